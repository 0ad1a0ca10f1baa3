package karpenter

import (
	"context"
	"slices"

	"sigs.k8s.io/karpenter/pkg/controllers/capacitybuffer"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	nodehydration "sigs.k8s.io/karpenter/pkg/controllers/node/hydration"
	"sigs.k8s.io/karpenter/pkg/controllers/node/legacyrepair"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination/terminator"
	claimconsistency "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/consistency"
	claimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
	claimexpiration "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/expiration"
	claimgarbage "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/garbagecollection"
	claimhydration "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/hydration"
	claimlifecycle "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	claimreboot "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/reboot"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	poolhash "sigs.k8s.io/karpenter/pkg/controllers/nodepool/hash"
	poolreadiness "sigs.k8s.io/karpenter/pkg/controllers/nodepool/readiness"
	poolhealth "sigs.k8s.io/karpenter/pkg/controllers/nodepool/registrationhealth"
	poolvalidation "sigs.k8s.io/karpenter/pkg/controllers/nodepool/validation"
	"sigs.k8s.io/karpenter/pkg/controllers/pod/deletioncost"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state/informer"
	statenodeclaimgc "sigs.k8s.io/karpenter/pkg/controllers/state/nodeclaimgc"
	staticdeprovisioning "sigs.k8s.io/karpenter/pkg/controllers/static/deprovisioning"
	staticprovisioning "sigs.k8s.io/karpenter/pkg/controllers/static/provisioning"
)

// lifecycle is what carries a NodeClaim from its creation to a drained and
// deleted machine, and a NodePool from its text to Ready.
func (a *Assembly) lifecycle() []named {
	drain := terminator.NewTerminator(a.clock, a.kube, a.Evictions.Queue, a.Recorder)
	writes := newOwnWrites(a.kube, a.clock)
	hooks := append(slices.Clone(a.registrations), deletedClaims{a.kube})
	return []named{
		{"nodeclaim.lifecycle", lifecycleController{claimlifecycle.NewController(a.clock, writes, a.Cloud, a.Recorder,
			a.Cluster.Cluster, a.poolHealth, hooks), writes}},
		{"nodeclaim.disruption", claimConditions{claimdisruption.NewController(a.clock, uncopied{a.kube}, a.Cloud), a.Cloud}},
		{"nodeclaim.expiration", claimexpiration.NewController(a.clock, a.kube, a.Cloud)},
		{"nodeclaim.garbagecollection", claimgarbage.NewController(a.clock, a.kube, a.Cloud)},
		{"nodeclaim.consistency", claimconsistency.NewController(a.clock, a.kube, a.Cloud, a.Recorder)},
		{"nodeclaim.hydration", claimhydration.NewController(a.kube, a.Cloud)},
		{"nodeclaim.podevents", a.podEvents()},
		// A reboot that has begun ends, whatever the gates say by then.
		{"nodeclaim.reboot", claimreboot.NewController(a.clock, a.kube, a.Cloud, drain, a.Recorder)},

		{"node.termination", termination.NewController(a.clock, a.kube, a.Cloud, drain, a.Recorder)},
		{"eviction-queue", a.Evictions.Queue},
		{"node.hydration", nodehydration.NewController(a.kube, a.Cloud)},

		{"nodepool.hash", poolhash.NewController(a.kube, a.Cloud)},
		{"nodepool.readiness", poolreadiness.NewController(a.clock, a.kube, a.Cloud)},
		{"nodepool.counter", a.poolCounter()},
		{"nodepool.validation", poolvalidation.NewController(a.clock, a.kube, a.Cloud)},
		{"nodepool.registrationhealth", poolhealth.NewController(a.clock, a.kube, a.Cloud, a.poolHealth)},
	}
}

// informers feed Karpenter's mirror of the cluster and of its cost.
func (a *Assembly) informers(ctx context.Context) []named {
	return append(a.mirrors(ctx), []named{
		{"state.daemonset", informer.NewDaemonSetController(a.kube, a.Cluster.Cluster)},
		{"state.nodepool", informer.NewNodePoolController(a.kube, a.Cloud, a.Cluster.Cluster, a.cost)},
		{"state.nodeclaimgc", statenodeclaimgc.NewController(a.kube, a.Cluster.Cluster)},
		{"state.pricing", informer.NewPricingController(a.kube, a.Cloud, a.cost)},
	}...)
}

// provisioning is Karpenter's own answer to pending pods.
func (a *Assembly) provisioning() []named {
	return []named{
		{"provisioner", a.simulation.provisioner},
		{"provisioner.trigger.pod", provisioning.NewPodController(a.kube, a.simulation.provisioner, a.Cluster.Cluster)},
		{"provisioner.trigger.node", provisioning.NewNodeController(a.kube, a.simulation.provisioner)},
	}
}

// disruption is Karpenter's own choice of nodes to remove.
func (a *Assembly) disruption(ctx context.Context) []named {
	queue := disruption.NewQueue(a.kube, a.Recorder, a.Cluster.Cluster, a.clock, a.simulation.provisioner)
	return []named{
		{"disruption", disruption.NewController(ctx, a.clock, a.kube, a.simulation.provisioner,
			a.Cloud, a.Recorder, a.Cluster.Cluster, queue, a.cost)},
		{"disruption.queue", queue},
	}
}

// gated are the controllers behind feature gates.
func (a *Assembly) gated(deciders Deciders) []named {
	var out []named
	gates := a.options.FeatureGates
	if !a.options.IgnoreDRARequests {
		out = append(out, named{"deviceallocation", a.simulation.devices})
	}
	// Otherwise repair is one of the methods of Karpenter's disruption loop.
	if gates.NodeRepair && a.options.LegacyNodeRepair {
		if deciders.RepairAlone {
			out = append(out, named{"node.health", newRepair(a.kube, a.Cloud, a.Cluster, a.clock, a.Recorder)})
		} else {
			out = append(out, named{"node.health", legacyrepair.NewController(a.kube, a.Cloud, a.clock, a.Recorder)})
		}
	}
	if gates.PodDeletionCostManagement {
		queue := deletioncost.NewQueue(a.kube)
		out = append(out, named{"pod.deletioncost.queue", queue},
			named{"pod.deletioncost", deletioncost.NewController(a.clock, a.kube, a.Cloud, a.Cluster.Cluster, queue)})
	}
	if gates.StaticCapacity {
		out = append(out,
			named{"static.provisioning", staticController{staticprovisioning.NewController(a.kube, a.Cluster.Cluster, a.Recorder,
				a.Cloud, a.simulation.provisioner, a.clock, a.simulation.devices, a.simulation.virtualPods), a.Cluster}},
			named{"static.deprovisioning", staticdeprovisioning.NewController(a.kube, a.Cluster.Cluster, a.Cloud, a.clock, a.Recorder)})
	}
	if gates.NodeOverlay {
		out = append(out, named{"nodeoverlay", nodeoverlay.NewController(a.clock, a.kube, a.undecorated, a.overlays, a.Cluster.Cluster)})
	}
	if gates.CapacityBuffer {
		var planner capacitybuffer.ProvisionerTrigger = a.Buffers
		if deciders.Provisioning {
			planner = a.simulation.provisioner
		}
		out = append(out, named{"capacitybuffer", capacitybuffer.NewController(a.kube, planner, a.simulation.virtualPods)})
	}
	return out
}
