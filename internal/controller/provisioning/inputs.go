package provisioning

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// planInputs is everything that one plan was made on. The applier compares the
// present with it. Nothing changes it once the plan is asked for.
type planInputs struct {
	snapshot *fleet.Snapshot
	// input is the planning problem that the snapshot states, less the pods that
	// have a place already.
	input *fleet.Input
	// pools are the NodePools as they were read before the snapshot, by name.
	pools map[string]*karpv1.NodePool
	// pods are the objects of the pods of the problem. A pod that is gone is absent.
	// The objects belong to the cache and must not be changed.
	pods map[model.PodRef]*corev1.Pod
	// circumstances are what may remove the cause of purchases that fail.
	circumstances string
	// held are pods that are not in the problem because purchases for them came to
	// nothing.
	held []heldPods
	// settled are pods that are not in the problem because the scheduler will find them a
	// place, see settleUnjudged.
	settled []model.PodRef
	// lost says that pods have lost the places that were reserved for them, and rearrangeable are
	// those that keep theirs on machines which are not ready.
	lost          bool
	rearrangeable rearrangeable
	// kept are virtual pods that are not in the problem, and where they have room: a disruption
	// is buying a place for them, or they would rather be elsewhere, see keepPreferring.
	kept map[model.PodRef]string
	// probing are the NodePools that may buy a single machine, by name, with the
	// reason.
	probing map[string]purchasebackoff.Record
}

// dropDisrupting takes pods out of the problem whose node has the taint of a
// disruption and is not given up yet: that disruption is buying a place for them.
// leaving are the names of the nodes that Karpenter gives up.
func (in *planInputs) dropDisrupting(leaving map[string]bool) {
	p := in.input.Problem
	deleted := sync.OnceValue(in.deletedNodes)
	for i := range p.Classes {
		p.Classes[i].Pods = slices.DeleteFunc(p.Classes[i].Pods, func(ref model.PodRef) bool {
			record := in.input.Record(ref)
			if record != nil && record.Buffer != "" {
				return in.keepsPlace(ref, leaving)
			}
			return record != nil && record.Node != "" && !leaving[record.Node] && !deleted()[record.Node]
		})
	}
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
}

// deletedNodes are the nodes that are deleted, or whose claims are. Karpenter's mirror may not
// know of them yet: it is filled after the first plan.
func (in *planInputs) deletedNodes() map[string]bool {
	out := map[string]bool{}
	for node := range in.snapshot.Nodes() {
		if node.Deleting {
			out[node.Name] = true
		}
	}
	for c := range in.snapshot.Claims() {
		if c.Leaving {
			out[c.NodeName] = true
		}
	}
	return out
}

// keepsPlace reports whether a virtual pod's room is on a node with the taint of a
// disruption which is not given up yet.
func (in *planInputs) keepsPlace(ref model.PodRef, leaving map[string]bool) bool {
	node := in.snapshot.BufferNode(ref)
	if node == nil || !node.Disrupted || node.Deleting || leaving[node.Name] {
		return false
	}
	in.keep(ref, in.snapshot.BufferPlace(ref))
	return true
}

// keep notes where a virtual pod has room that is not in the problem.
func (in *planInputs) keep(ref model.PodRef, place string) {
	if in.kept == nil {
		in.kept = map[model.PodRef]string{}
	}
	in.kept[ref] = place
}

// present returns the objects of those pods that still exist.
func (in *planInputs) present(refs []model.PodRef) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(refs))
	for _, ref := range refs {
		if pod := in.pods[ref]; pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// gatherer reads what a plan depends on. It has no state of its own.
type gatherer struct {
	kube     client.Reader
	mirror   Mirror
	catalogs fleet.Catalogs
	// policy is that of every plan, but for Elapsed and Seed.
	policy model.Policy
	clock  clock.Clock
	// admission says which NodePools may buy.
	admission *admission
}

func newGatherer(cfg *Config) *gatherer {
	return &gatherer{
		kube: cfg.Clients.Cached, mirror: cfg.Mirror, catalogs: cfg.Catalogs, clock: cfg.Clock,
		policy: model.Policy{
			IgnorePreferences: cfg.Settings.IgnorePreferences,
			RelaxMinValues:    cfg.Settings.RelaxMinValues,
			Share:             cfg.Settings.Share,
			Budget:            cfg.Settings.Budget,
		},
	}
}

// gather states the planning problem of this moment; id is the plan's. The pods'
// objects are read later, by readPods. The pools are read before the snapshot is
// taken: a change in between is then seen when the plan is applied, and not lost.
func (g *gatherer) gather(ctx context.Context, id string) (*planInputs, error) {
	var pools karpv1.NodePoolList
	if err := g.kube.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	in := &planInputs{snapshot: g.mirror.Snapshot(), pools: map[string]*karpv1.NodePool{}}
	// After the snapshot: a machine that cannot become a node is counted before its pods
	// are planned again.
	if err := g.admission.registrations.Look(ctx, g.kube); err != nil {
		return nil, err
	}
	for i := range pools.Items {
		in.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	in.circumstances = circumstances(in)
	policy := g.policy
	policy.Elapsed, policy.Seed = stopwatch(g.clock), seed(id)
	input, err := in.snapshot.Problem(ctx, g.catalogs, fleet.Options{Now: g.clock.Now(), Policy: policy, Paused: g.admission.look(in)})
	if err != nil {
		return nil, fmt.Errorf("stating the planning problem: %w", err)
	}
	in.input = input
	return in, nil
}

// stopwatch starts when it is first asked, which is when the planner begins.
func stopwatch(clk clock.Clock) func() time.Duration {
	var start time.Time
	return func() time.Duration {
		if start.IsZero() {
			start = clk.Now()
		}
		return clk.Since(start)
	}
}

// seed makes a plan reproducible from its id.
func seed(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

// readPods returns the objects of the problem's pods, for events and for Karpenter's
// mirror. A pod that is gone is absent.
func (g *gatherer) readPods(ctx context.Context, input *fleet.Input) (map[model.PodRef]*corev1.Pod, error) {
	var list corev1.PodList
	if err := g.kube.List(ctx, &list, client.MatchingFields{"spec.nodeName": ""}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods that wait: %w", err)
	}
	pods := make(map[model.PodRef]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		p := &list.Items[i]
		pods[model.PodRef{Namespace: p.Namespace, Name: p.Name}] = p
	}
	for i := range input.Problem.Classes {
		for _, ref := range input.Problem.Classes[i].Pods {
			if pods[ref] != nil || input.Record(ref).Announced > 0 {
				continue
			}
			pod := &corev1.Pod{}
			if err := g.kube.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod); err == nil {
				pods[ref] = pod
			} else if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("reading pod %s: %w", ref, err)
			}
		}
	}
	return pods, nil
}
