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

	"github.com/awslabs/operatorpkg/status"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// renewEvery is how often a node renews its lease; after lostAfter without, the control plane
// takes the node for lost. Kubelets renew every 10 s, and are lost after 50 s: with 5,000 nodes
// that would be 500 writes a second beside the control plane, on the same machine, and one that
// is busy for a minute would lose nodes, whose taints, and the loss of these, are more work.
const (
	renewEvery = 2 * time.Minute
	lostAfter  = 10 * time.Minute
)

// kubelets stand for the kubelets of all machines.
type kubelets struct {
	kube    client.Client
	seen    client.Reader // NodeClaims and Nodes
	version string        // of Kubernetes: that of the control plane, as v1.36.0

	mu     sync.Mutex
	nodes  map[string]time.Time             // those that have joined, and when their lease was renewed
	leases map[string]*coordinationv1.Lease // of the same nodes, as last written
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newKubelets(kube client.Client, seen client.Reader, version string) *kubelets {
	k := &kubelets{kube: kube, seen: seen, version: version, nodes: map[string]time.Time{}, leases: map[string]*coordinationv1.Lease{}}
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

// enough is how many of the wanted nodes make a cluster: a machine that joins late, on a
// machine that is busy with all of them, is given back.
func enough(want int) int { return want * 95 / 100 }

// atOnce is how many machines are bought at once: where 5,000 came together, the control plane
// and the controller on two cores took longer than a node may take to register.
const atOnce = 400

// join buys the wanted machines, some at a time, and lets each join as soon as it is bought,
// until all nodes are initialized, and enough of those that are wanted. buy creates the
// NodeClaims with the numbers from first to below last.
func (k *kubelets) join(ctx context.Context, want int, buy func(ctx context.Context, first, last int) error, within time.Duration) error {
	late, claimed := time.After(within), 0
	for {
		var claims v1.NodeClaimList
		if err := k.seen.List(ctx, &claims); err != nil {
			return fmt.Errorf("list NodeClaims: %w", err)
		}
		initialized := 0
		var bought []*v1.NodeClaim
		for i := range claims.Items {
			c := &claims.Items[i]
			if isInitialized(c) {
				initialized++
			} else if c.Status.ProviderID != "" && !k.has(nodeName(c)) {
				bought = append(bought, c)
			}
		}
		if claimed == want && initialized == len(claims.Items) && initialized >= enough(want) {
			return nil
		}
		if next := min(want, initialized+atOnce); next > claimed {
			if err := buy(ctx, claimed, next); err != nil {
				return fmt.Errorf("create NodeClaims: %w", err)
			}
			claimed = next
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

// isInitialized reads what is written, whatever generation it was written for.
func isInitialized(c *v1.NodeClaim) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(s status.Condition) bool {
		return s.Type == v1.ConditionTypeInitialized && s.Status == metav1.ConditionTrue
	})
}

func nodeName(c *v1.NodeClaim) string { return path.Base(c.Status.ProviderID) }

func (k *kubelets) has(node string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, joined := k.nodes[node]
	return joined
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
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "10.1.2.3"}},
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: k.version, OperatingSystem: "linux", Architecture: "amd64"},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now},
			},
		},
	}
	if err := client.IgnoreAlreadyExists(k.kube.Create(ctx, node)); err != nil {
		return fmt.Errorf("create Node %s: %w", name, err)
	}
	lease := newLease(name)
	if err := client.IgnoreAlreadyExists(k.kube.Create(ctx, lease)); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes[name], k.leases[name] = time.Now(), lease
	return nil
}

// newLease is the lease of a node, renewed now.
func newLease(node string) *coordinationv1.Lease {
	seconds, now := int32(40), metav1.NowMicro()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

// renew renews leases when they are due, until ctx is done.
func (k *kubelets) renew(ctx context.Context) {
	for {
		due := k.due(time.Now())
		// What fails is due again at once; a node that has been removed has no lease any more.
		_ = each(ctx, len(due), func(ctx context.Context, i int) error {
			k.renewOne(ctx, due[i])
			return nil
		})
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// due are the nodes whose leases were renewed long ago, oldest first, and notes that they
// are renewed now. No more come at once than spreads the work over the interval.
func (k *kubelets) due(now time.Time) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for name, renewed := range k.nodes {
		if now.Sub(renewed) >= renewEvery {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return k.nodes[a].Compare(k.nodes[b]) })
	names = names[:min(len(names), 2*len(k.nodes)/int(renewEvery.Seconds())+1)]
	for _, name := range names {
		k.nodes[name] = now
	}
	return names
}

// renewOne renews the lease of a node as a kubelet does: it updates the lease that it wrote
// last, and reads it only where that fails. Where the control plane has taken the node for
// lost, it says that the node is ready.
func (k *kubelets) renewOne(ctx context.Context, node string) {
	k.mu.Lock()
	lease := k.leases[node]
	k.mu.Unlock()
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	if k.kube.Update(ctx, lease) != nil {
		_ = k.kube.Get(ctx, client.ObjectKeyFromObject(lease), lease) // for the next time
	}
	n := &corev1.Node{}
	if err := k.seen.Get(ctx, client.ObjectKey{Name: node}, n); err != nil || ready(n) {
		return
	}
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q,"lastTransitionTime":%[1]q}]}}`,
		now.UTC().Format(time.RFC3339))
	_ = k.kube.Status().Patch(ctx, n, client.RawPatch("application/strategic-merge-patch+json", patch))
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
