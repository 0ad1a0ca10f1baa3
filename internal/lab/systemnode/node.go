package systemnode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// Config says which node is played, and what runs on it.
type Config struct {
	// Name, ProviderID, Region, Zone and Labels are the Node's.
	Name, ProviderID, Region, Zone string
	Labels                         map[string]string
	// Programs are the built programs that stand for images, by the image's reference.
	Programs map[string]Program
	// WorkloadIdentity is what the webhook of that name gives to pods that ask for it.
	WorkloadIdentity WorkloadIdentity
}

// Program is a built program in the place of an image.
type Program struct {
	// Name is what its first process is called in the lab; more have a number behind it.
	Name string
	// Path is the program's.
	Path string
	// Ports are those that it listens on, each by its variables.
	Ports []Port
}

// Port is how a program is told where to listen. A replica of its own port is given by
// both variables.
type Port struct {
	Number  string // variable with the port's number
	Address string // variable with host:port
	Default int    // what holds without either
}

// WorkloadIdentity is Azure's sign-in by a token of the ServiceAccount.
type WorkloadIdentity struct {
	// AuthorityHost is the URL at which the token is exchanged.
	AuthorityHost string
	// TenantID holds for accounts that name none.
	TenantID string
}

// Addresses of the node and its pods are of the ranges for documentation (RFC 5737):
// valid, and of no network.
const (
	nodeIP       = "192.0.2.4"
	podIPs       = "198.51.100.%d"
	kubeletPort  = 10250
	heartbeat    = 10 * time.Second
	leaseSeconds = 40
)

// Node is one system node.
type Node struct {
	cfg    Config
	env    lab.Environment
	client kubernetes.Interface
	log    *slog.Logger
	pods   *pods
}

// New prepares a node in a lab; Run registers it.
func New(cfg Config, env lab.Environment) (*Node, error) {
	rest, err := env.AdminConfig()
	if err != nil {
		return nil, err
	}
	rest.UserAgent = "nap-lab-system-node"
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("system node: %w", err)
	}
	n := &Node{cfg: cfg, env: env, client: client, log: env.Log}
	n.pods = newPods(cfg, env, client)
	return n, nil
}

// Run registers the node, keeps it ready and runs its pods until ctx is done. The
// processes of its pods have ended when it returns.
func (n *Node) Run(ctx context.Context) error {
	if err := n.register(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.serveKubelet(ctx) })
	g.Go(func() error { return n.pods.run(ctx) })
	g.Go(func() error {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if err := n.register(ctx); err != nil && ctx.Err() == nil {
				n.log.Error("the system node's heartbeat failed", "error", err)
			}
		}
	})
	return g.Wait()
}

// register makes the Node and its lease what they are to be, at the start and at each
// heartbeat.
func (n *Node) register(ctx context.Context) error {
	if err := n.renew(ctx); err != nil {
		return fmt.Errorf("lease of system node %s: %w", n.cfg.Name, err)
	}
	nodes := n.client.CoreV1().Nodes()
	now, err := nodes.Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		now, err = nodes.Create(ctx, n.object(), metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("system node %s: %w", n.cfg.Name, err)
	}
	for _, c := range now.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && time.Since(c.LastHeartbeatTime.Time) < 5*time.Minute {
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"status": n.status()})
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, n.cfg.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// renew renews the node's lease, by which the control plane knows that it lives.
func (n *Node) renew(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(leaseSeconds), metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.cfg.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, n.cfg.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Namespace: corev1.NamespaceNodeLease}, Spec: spec}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	return err
}

// object is the Node as it registers.
func (n *Node) object() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: n.cfg.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
		corev1.LabelTopologyRegion: n.cfg.Region, corev1.LabelTopologyZone: n.cfg.Zone,
	}
	for key, value := range n.cfg.Labels {
		labels[key] = value
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Labels: labels},
		Spec: corev1.NodeSpec{
			ProviderID: n.cfg.ProviderID,
			Taints:     []corev1.Taint{{Key: "CriticalAddonsOnly", Value: "true", Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: n.status(),
	}
}

// status is that of a ready node of four CPUs, whatever this machine has: processes are
// not held to what their pods request.
func (n *Node) status() corev1.NodeStatus {
	now := metav1.Now()
	condition := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: t, Status: s, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return corev1.NodeStatus{
		Capacity: size, Allocatable: size,
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
			condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: nodeIP}, {Type: corev1.NodeHostName, Address: n.cfg.Name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: n.env.KubernetesVersion, OperatingSystem: "linux", Architecture: runtime.GOARCH,
			OSImage: "nap lab", KernelVersion: "none", ContainerRuntimeVersion: "process://1",
			MachineID: n.cfg.Name, SystemUUID: n.cfg.Name, BootID: n.cfg.Name,
		},
	}
}
