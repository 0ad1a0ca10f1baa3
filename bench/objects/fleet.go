package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/bench/onlab"
)

// Size is how large a cluster is.
type Size struct{ Nodes, Pods, Pools int }

// SizeOf is the size with so many nodes: ten pods to a node, and 300 NodePools from 5,000
// nodes on, less below.
func SizeOf(nodes int) Size {
	return Size{Nodes: nodes, Pods: 10 * nodes, Pools: max(1, min(300, nodes*300/5000))}
}

// latePool is the NodePool of the pods that wait when a controller starts.
const latePool = "late"

// writers is how many requests at once fill the cluster.
const writers = 16

// class is the AKSNodeClass of all NodePools.
const class = `apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: default}
spec: {osDiskSizeGB: 128}
`

// fleet is a cluster under construction.
type fleet struct {
	size Size
	lab  *onlab.Lab
	kube client.Client
	// seen follows NodeClaims and Nodes by watches.
	seen cache.Cache
	// version is the Kubernetes version of the control plane, as v1.36.0.
	version string
}

// newFleet connects to the lab. Watches end with ctx.
func newFleet(ctx context.Context, l *onlab.Lab, size Size) (*fleet, error) {
	kube, err := client.New(l.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the lab: %w", err)
	}
	plane, err := discovery.NewDiscoveryClientForConfig(l.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the lab: %w", err)
	}
	version, err := plane.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the version of the control plane: %w", err)
	}
	seen, err := cache.New(l.Config, cache.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("watch the lab: %w", err)
	}
	for _, kind := range []client.Object{&v1.NodeClaim{}, &corev1.Node{}} {
		if _, err := seen.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watch the lab: %w", err)
		}
	}
	go func() { _ = seen.Start(ctx) }() // it ends with ctx alone
	if !seen.WaitForCacheSync(ctx) {
		return nil, errors.New("watch the lab: stopped before all was read")
	}
	return &fleet{size: size, lab: l, kube: kube, seen: seen, version: version.GitVersion}, nil
}

// sizes are what the machines of a fleet are, one after the other.
func sizes() []string {
	return []string{
		"Standard_D4s_v5", "Standard_D8s_v5", "Standard_E4s_v5", "Standard_D16s_v5", "Standard_E8s_v5", "Standard_F8s_v2", "Standard_D4as_v5",
	}
}

func poolName(i int) string { return fmt.Sprintf("pool-%03d", i) }

// pools creates the NodePools, whose budgets permit nothing yet.
func (f *fleet) pools(ctx context.Context) error {
	for i := range f.size.Pools {
		if err := f.kube.Create(ctx, nodePool(poolName(i))); err != nil {
			return fmt.Errorf("create a NodePool: %w", err)
		}
	}
	return f.kube.Create(ctx, nodePool(latePool))
}

func nodePool(name string) *v1.NodePool {
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	np := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	np.Spec.Template.Spec = v1.NodeClaimTemplateSpec{
		NodeClassRef: &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"},
		ExpireAfter:  v1.MustParseNillableDuration("Never"),
		Requirements: []v1.NodeSelectorRequirementWithMinValues{
			in(corev1.LabelArchStable, "amd64"), in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
			in("karpenter.azure.com/sku-family", "D", "E", "F"), in("karpenter.azure.com/sku-cpu", "4", "8", "16", "32"),
		},
	}
	np.Spec.Disruption = v1.Disruption{
		ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		ConsolidateAfter:    v1.MustParseNillableDuration("0s"), Budgets: []v1.Budget{{Nodes: "0"}},
	}
	return np
}

// openBudgets permits that all nodes are disrupted.
func (f *fleet) openBudgets(ctx context.Context) error {
	return each(ctx, f.size.Pools, func(ctx context.Context, i int) error {
		np := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: poolName(i)}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`))
		return f.kube.Patch(ctx, np, patch)
	})
}

func claimName(i int) string { return fmt.Sprintf("fleet-%05d", i) }

// claims creates the NodeClaims with the numbers from first to below last. A controller
// launches them.
func (f *fleet) claims(ctx context.Context, first, last int) error {
	return each(ctx, last-first, func(ctx context.Context, i int) error {
		i += first
		in := func(key, value string) v1.NodeSelectorRequirementWithMinValues {
			return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
		}
		pool := poolName(i % f.size.Pools)
		return f.kube.Create(ctx, &v1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: claimName(i), Labels: map[string]string{v1.NodePoolLabelKey: pool}},
			Spec: v1.NodeClaimSpec{
				NodeClassRef: &v1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"},
				ExpireAfter:  v1.MustParseNillableDuration("Never"),
				Requirements: []v1.NodeSelectorRequirementWithMinValues{
					in(corev1.LabelInstanceTypeStable, sizes()[i%len(sizes())]), in(corev1.LabelTopologyZone, fmt.Sprintf("eastus-%d", i%3+1)),
					in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand), in(v1.NodePoolLabelKey, pool),
				},
				Resources: v1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			},
		})
	})
}

// setUpWithin bounds the time until all nodes of a cluster are initialized.
const setUpWithin = 30 * time.Minute

// build makes the cluster: a controller of engine nap buys the machines and initializes
// the nodes, then it is stopped, and the pods are put on them.
func (f *fleet) build(ctx context.Context, log string) (*kubelets, error) {
	if _, err := f.lab.Azure.AddFault(ctx, "no-boot", nil); err != nil {
		return nil, err
	}
	if err := f.pools(ctx); err != nil {
		return nil, err
	}
	c, err := f.lab.Run(ctx, "nap", log)
	if err != nil {
		return nil, err
	}
	k := newKubelets(f.kube, f.seen, f.version)
	err = k.join(ctx, f.size.Nodes, f.claims, setUpWithin)
	c.Kill() // it would wait for machines, which never boot
	if err == nil {
		err = f.pods(ctx, k.names())
	}
	if err != nil {
		k.stop()
		return nil, err
	}
	return k, nil
}

// each does work for 0 to n-1, several at once, and ends with the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
