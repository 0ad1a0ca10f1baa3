// Package kubelet simulates the kubelets of virtual machines, so that a
// machine bought in the lab becomes a node the way a real one does.
//
// [Kubelets] runs any number of kubelets in one process. The simulated cloud
// tells it what happens to its machines ([Kubelets.Booted],
// [Kubelets.EvictionNotice], [Kubelets.Gone]); everything else goes through the
// Kubernetes API.
//
// Honest where it decides something:
//
//   - A machine joins with nothing but the boot data it was created with
//     ([bootdata.Parse]): it asks for a client certificate with the bootstrap
//     token, waits until the control plane has approved and signed it, and
//     registers its Node with that certificate, so that the Node authorizer and
//     NodeRestriction judge it. Wrong boot data means no node, and
//     [Kubelets.Status] says why.
//
//   - Allocatable follows from the machine's size and from the reservations and
//     eviction thresholds in the boot data, not from what a planner expected.
//
//   - A machine that is gone says no goodbye: heartbeats stop, and the control
//     plane has to notice.
//
//   - Readiness probes, preStop hooks and commands that end count, as far as they
//     have a plain meaning where nothing is executed (package container).
//
// Cheap where it does not: containers are not run, they are reported as
// running after a delay; once registered, all kubelets share one privileged
// client, one watch on nodes, one on bound pods, and three work queues whose
// timers are heaps. There is no goroutine per machine or pod, so that a
// thousand nodes with ten thousand pods fit beside a control plane on two cores.
//
// Three duties that belong to neighbours of the kubelet on AKS are done here too,
// because nothing else in the lab does them: the cloud node manager's labels and
// the removal of its taint, the removal of the taint that waits for Cilium's agent
// (cloud.go), and the deletion of Node objects whose
// machine no longer exists (orphan.go).
//
// The way of a machine, as [Status.Phase] shows it:
//
//	Booting ─> Bootstrapping ─> AwaitingCertificate ─> Registering ─> NotReady ─> Ready
//	   └─> Failed (boot data unusable)                                   └── Deregistered (Node object deleted)
package kubelet
