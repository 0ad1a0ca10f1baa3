package objects

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// renewEvery is how often a node renews its lease; after 50 s without, the control plane
// takes the node for lost.
const renewEvery = 20 * time.Second

// kubelets stand for the kubelets of all machines.
type kubelets struct {
	kube    client.Client
	version string // of Kubernetes: that of the control plane, as v1.36.0

	mu     sync.Mutex
	nodes  map[string]bool // those that have joined
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newKubelets(kube client.Client, version string) *kubelets {
	k := &kubelets{kube: kube, version: version, nodes: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.ended.Go(func() { k.renew(ctx) })
	return k
}

// stop ends the renewal of leases.
func (k *kubelets) stop() {
	k.cancel()
	k.ended.Wait()
}

// names are the nodes that have joined, sorted.
func (k *kubelets) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.nodes))
}

// join lets the machine of each NodeClaim join as soon as it is bought, until so many
// nodes are initialized.
func (k *kubelets) join(ctx context.Context, want int, within time.Duration) error {
	late := time.After(within)
	for {
		var claims v1.NodeClaimList
		if err := k.kube.List(ctx, &claims); err != nil {
			return fmt.Errorf("list NodeClaims: %w", err)
		}
		initialized := 0
		var bought []*v1.NodeClaim
		for i := range claims.Items {
			c := &claims.Items[i]
			if c.StatusConditions().Get(v1.ConditionTypeInitialized).IsTrue() {
				initialized++
			} else if c.Status.ProviderID != "" && !k.has(nodeName(c)) {
				bought = append(bought, c)
			}
		}
		if initialized >= want {
			return nil
		}
		if err := each(ctx, len(bought), func(ctx context.Context, i int) error { return k.register(ctx, bought[i]) }); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%d of %d nodes are initialized, %d have joined\n", initialized, want, len(k.names()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("%d of %d nodes are initialized after %s", initialized, want, within)
		case <-time.After(3 * time.Second):
		}
	}
}

func nodeName(c *v1.NodeClaim) string { return path.Base(c.Status.ProviderID) }

func (k *kubelets) has(node string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nodes[node]
}

// register creates the Node and its lease as a kubelet does.
func (k *kubelets) register(ctx context.Context, c *v1.NodeClaim) error {
	name := nodeName(c)
	labels := maps.Clone(c.Labels)
	maps.Copy(labels, map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"})
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: c.Status.ProviderID, Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint}},
		Status: corev1.NodeStatus{
			Capacity: c.Status.Capacity, Allocatable: c.Status.Allocatable,
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "10.1.2.3"}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: k.version, OperatingSystem: "linux", Architecture: "amd64"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now}},
		},
	}
	if err := client.IgnoreAlreadyExists(k.kube.Create(ctx, node)); err != nil {
		return fmt.Errorf("create Node %s: %w", name, err)
	}
	if err := k.lease(ctx, name); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes[name] = true
	return nil
}

// lease creates the lease of a node.
func (k *kubelets) lease(ctx context.Context, node string) error {
	seconds, now := int32(40), metav1.NowMicro()
	return client.IgnoreAlreadyExists(k.kube.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}))
}

// renew renews all leases, spread over the interval, until ctx is done.
func (k *kubelets) renew(ctx context.Context) {
	for ctx.Err() == nil {
		nodes := k.names()
		pause := time.NewTicker(renewEvery / time.Duration(len(nodes)+1))
		for _, node := range append(nodes, "") {
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
			}
			if node != "" {
				k.renewOne(ctx, node)
			}
		}
		pause.Stop()
	}
}

func (k *kubelets) renewOne(ctx context.Context, node string) {
	now := metav1.NowMicro()
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	// A node that has been removed has none any more; what fails otherwise is tried again in the next round.
	_ = k.kube.Patch(ctx, l, client.RawPatch("application/merge-patch+json", patch))
}
