package karpenterengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpscheduling "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

// Options are the settings of Karpenter that change its plans.
type Options struct {
	// IgnorePreferences is --preference-policy=Ignore, RelaxMinValues is
	// --min-values-policy=BestEffort.
	IgnorePreferences bool
	RelaxMinValues    bool
	// Workers is how many look for a place for a pod at the same time; zero is one
	// per core.
	Workers int
}

// controller is whose pass it is.
const controller = "provisioner"

// Scheduler is ready for one pass.
type Scheduler struct {
	client  client.Client
	cluster *state.Cluster
	pools   []*v1.NodePool
	types   map[string][]*cloudprovider.InstanceType
	daemons []*corev1.Pod
	pending []*corev1.Pod
	opts    Options
}

// Node is a machine that the pass wants to buy, at its cheapest offering.
type Node struct {
	Pool, InstanceType, Zone, CapacityType string
	Price                                  float64
	// Labels are those that the pass settled on one value.
	Labels map[string]string
	// Scant says of which label what can be bought for the NodeClaim has fewer values
	// than minValues asks for, if so.
	Scant string
	Pods  []types.NamespacedName
}

// Result is what a pass decided.
type Result struct {
	Nodes []Node
	// Existing are the pods for nodes that exist or are on their way, by name.
	Existing map[string][]types.NamespacedName
	// Unschedulable are the pods without a place, with Karpenter's words.
	Unschedulable map[types.NamespacedName]string
	// Cost is dollars per hour.
	Cost float64
	// TimedOut says that the context ended first; pods that were not looked at
	// count as unschedulable.
	TimedOut bool
}

// New fills an in-memory API and Karpenter's cluster state with the objects.
func New(ctx context.Context, in *Input, opts Options) (*Scheduler, error) {
	s := &Scheduler{opts: opts, types: map[string][]*cloudprovider.InstanceType{}}
	var known []client.Object
	for _, o := range in.Objects {
		switch o := o.(type) {
		case *corev1.Pod:
			if o.Spec.NodeName == "" {
				// The pass writes into the pods that it gets.
				s.pending = append(s.pending, o.DeepCopy())
				continue
			}
		case *v1.NodePool:
			s.pools = append(s.pools, o)
			s.types[o.Name] = in.InstanceTypes
		case *appsv1.DaemonSet:
			s.daemons = append(s.daemons, daemonset.PodForDaemonSet(o))
		}
		known = append(known, o)
	}
	nodepool.OrderByWeight(s.pools)
	mirror, err := NewMirror(known)
	if err != nil {
		return nil, fmt.Errorf("hold the objects that Karpenter reads: %w", err)
	}
	s.client = mirror
	s.cluster = state.NewCluster(clock.RealClock{}, s.client, Cloud{Types: in.InstanceTypes})
	ctx = Context(ctx, controller)
	if err := s.fill(ctx, known); err != nil {
		return nil, err
	}
	return s, s.addLeaving(ctx)
}

// addLeaving adds the pods on nodes that are being deleted to those that wait, as
// Karpenter's provisioner does before each pass.
func (s *Scheduler) addLeaving(ctx context.Context) error {
	leaving, err := s.cluster.DeepCopyNodes().Deleting().CurrentlyReschedulablePods(ctx, s.client, clock.RealClock{},
		events.NewRecorder(&record.FakeRecorder{}))
	if err != nil {
		return fmt.Errorf("read the pods of nodes that are being deleted: %w", err)
	}
	for _, p := range leaving {
		s.pending = append(s.pending, p.DeepCopy())
	}
	return nil
}

// fill tells the cluster state what its informers would have told it.
func (s *Scheduler) fill(ctx context.Context, objects []client.Object) error {
	for _, o := range objects {
		if c, ok := o.(*v1.NodeClaim); ok {
			s.cluster.UpdateNodeClaim(c.DeepCopy())
		}
	}
	for _, o := range objects {
		if n, ok := o.(*corev1.Node); ok {
			if err := s.cluster.UpdateNode(ctx, n.DeepCopy()); err != nil {
				return fmt.Errorf("tell Karpenter of node %s: %w", n.Name, err)
			}
		}
	}
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok {
			if err := s.cluster.UpdatePod(ctx, p.DeepCopy()); err != nil {
				return fmt.Errorf("tell Karpenter of pod %s/%s: %w", p.Namespace, p.Name, err)
			}
		}
	}
	return nil
}

// Solve runs the pass. It fails only when Karpenter does; a context that ends is
// told in the result.
func (s *Scheduler) Solve(ctx context.Context) (*Result, error) {
	ctx = Context(ctx, controller)
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(cmp.Or(s.opts.Workers, runtime.GOMAXPROCS(0))),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	if s.opts.RelaxMinValues {
		opts = append(opts, scheduling.MinValuesPolicy(options.MinValuesPolicyBestEffort))
	}
	if s.opts.IgnorePreferences {
		opts = append(opts, scheduling.IgnorePreferences)
	}
	nodes := s.cluster.DeepCopyNodes().Active()
	pods, volumes, skipped := s.volumes(ctx)
	topology, err := scheduling.NewTopology(ctx, s.client, s.cluster, nodes, s.pools, s.types, pods, opts...)
	if err != nil {
		return nil, fmt.Errorf("count Karpenter's topology: %w", err)
	}
	pass := scheduling.NewScheduler(ctx, s.client, s.pools, s.cluster, nodes, topology, s.types, s.daemons,
		events.NewRecorder(&record.FakeRecorder{}), clock.RealClock{}, volumes, nil, opts...)
	found, err := pass.Solve(ctx, pods)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("run Karpenter's scheduler: %w", err)
	}
	return s.read(found, skipped, errors.Is(err, context.DeadlineExceeded))
}

// volumes finds where the disks of pods allow them; pods whose disks cannot be
// resolved, or cannot be attached yet, are not scheduled: these are skipped, with Karpenter's words.
func (s *Scheduler) volumes(ctx context.Context) (
	pods []*corev1.Pod, found map[types.UID][]karpscheduling.Requirements, skipped map[types.UID]error,
) {
	where := scheduling.NewVolumeTopology(s.client)
	found, skipped = map[types.UID][]karpscheduling.Requirements{}, map[types.UID]error{}
	for _, p := range s.pending {
		err := where.ValidatePersistentVolumeClaims(ctx, p)
		if err == nil {
			found[p.UID], err = where.GetRequirements(ctx, p)
		}
		if len(found[p.UID]) == 0 {
			delete(found, p.UID)
		}
		if err != nil {
			skipped[p.UID] = err
			continue
		}
		pods = append(pods, p)
	}
	return pods, found, skipped
}

func (s *Scheduler) read(found scheduling.Results, skipped map[types.UID]error, timedOut bool) (*Result, error) {
	out := &Result{Existing: map[string][]types.NamespacedName{}, Unschedulable: map[types.NamespacedName]string{}, TimedOut: timedOut}
	placed := map[types.NamespacedName]bool{}
	names := func(pods []*corev1.Pod) []types.NamespacedName {
		var out []types.NamespacedName
		for _, p := range pods {
			name := client.ObjectKeyFromObject(p)
			placed[name] = true
			out = append(out, name)
		}
		return out
	}
	for _, n := range found.ExistingNodes {
		if len(n.Pods) > 0 {
			out.Existing[n.Name()] = names(n.Pods)
		}
	}
	for _, claim := range found.NewNodeClaims {
		node, err := Cheapest(claim)
		if err != nil {
			return nil, err
		}
		node.Pods = names(claim.Pods)
		out.Nodes = append(out.Nodes, node)
		out.Cost += node.Price
	}
	for _, p := range s.pending {
		if name := client.ObjectKeyFromObject(p); !placed[name] {
			out.Unschedulable[name] = "not looked at"
			if err := skipped[p.UID]; err != nil {
				out.Unschedulable[name] = err.Error()
			}
		}
	}
	for p, err := range found.PodErrors {
		out.Unschedulable[client.ObjectKeyFromObject(p)] = err.Error()
	}
	slices.SortStableFunc(out.Nodes, func(a, b Node) int { return strings.Compare(a.InstanceType, b.InstanceType) })
	return out, nil
}

// Cheapest picks the cheapest offering that a claim leaves to its provider. It fails
// when the claim leaves none.
func Cheapest(claim *scheduling.NodeClaim) (Node, error) {
	best := Node{Pool: claim.NodePoolName, Price: math.Inf(1), Labels: map[string]string{}}
	for key, r := range claim.Requirements {
		if r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
			best.Labels[key] = r.Values()[0]
		}
		if least := r.MinValues(); least != nil && valuesToBuy(claim, key) < *least {
			best.Scant = fmt.Sprintf("%d values of %s can be bought, minValues is %d", valuesToBuy(claim, key), key, *least)
		}
	}
	for _, t := range claim.InstanceTypeOptions {
		for _, o := range t.Offerings {
			if o.Available && o.Price < best.Price && claim.Requirements.IsCompatible(o.Requirements, karpscheduling.AllowUndefinedWellKnownLabels) {
				best.InstanceType, best.Zone, best.CapacityType, best.Price = t.Name, o.Zone(), o.CapacityType(), o.Price
			}
		}
	}
	if best.InstanceType == "" {
		return best, fmt.Errorf("a NodeClaim of pool %s with %d pods allows no offering at all", claim.NodePoolName, len(claim.Pods))
	}
	return best, nil
}

// valuesToBuy is how many values of a label the machines have that can be bought for
// a claim. Karpenter itself counts the values that the sizes name, whether or not the
// claim allows them and a machine is sold with them.
func valuesToBuy(claim *scheduling.NodeClaim, key string) int {
	values := map[string]bool{}
	for _, t := range claim.InstanceTypeOptions {
		for _, o := range t.Offerings {
			if !o.Available || !claim.Requirements.IsCompatible(o.Requirements, karpscheduling.AllowUndefinedWellKnownLabels) {
				continue
			}
			from := t.Requirements
			if o.Requirements.Has(key) {
				from = o.Requirements
			}
			for _, v := range from.Get(key).Values() {
				values[v] = true
			}
		}
	}
	return len(values)
}

// Where says in words where a pod goes.
func (r *Result) Where(pod types.NamespacedName) string {
	for name, pods := range r.Existing {
		if slices.Contains(pods, pod) {
			return "node " + name
		}
	}
	for _, n := range r.Nodes {
		if slices.Contains(n.Pods, pod) {
			return fmt.Sprintf("a new %s in %s (%s) of pool %s with %d pods", n.InstanceType, n.Zone, n.CapacityType, n.Pool, len(n.Pods))
		}
	}
	return "no node"
}
