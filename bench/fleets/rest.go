package fleets

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// Rest is what a fleet at rest takes.
type Rest struct {
	Nodes, Pods int
	// Decision is the CPU of one decision that finds nothing to do: stating the fleet and
	// the search.
	Decision time.Duration
	// Pod is the CPU from the event of one pod that waits to its plan.
	Pod time.Duration
	// Bought says that the plan for the pod buys a machine.
	Bought bool
}

// AtRest draws a fleet, consolidates it until nothing is left to do, and measures one
// decision more, and one pod that waits. The pod asks for more than any node has left.
func AtRest(ctx context.Context, f Fleet, budget, planBudget time.Duration) (*Rest, error) {
	cluster, err := Draw(f)
	if err != nil {
		return nil, err
	}
	n := newNap(cluster, model.DefaultConsolidationTerms())
	for answers := 0; ; answers++ {
		begin := beside.CPU()
		in, moves, err := n.ask(ctx, budget)
		if err != nil {
			return nil, err
		}
		if took := beside.CPU() - begin; len(moves.Commands) == 0 {
			out := &Rest{Nodes: len(n.nodes), Pods: len(n.pods), Decision: took}
			return out, n.onePod(ctx, out, planBudget)
		}
		if answers > 100 {
			return nil, fmt.Errorf("after %d answers there is still more to propose", answers)
		}
		for i := range moves.Commands {
			if err := n.make(in, &moves.Commands[i]); err != nil {
				return nil, err
			}
		}
	}
}

// onePod measures the plan for one pod that waits.
func (n *nap) onePod(ctx context.Context, out *Rest, budget time.Duration) error {
	var waiting *corev1.Pod
	for _, p := range n.pods {
		if waiting == nil || p.Name < waiting.Name {
			waiting = p
		}
	}
	waiting = waiting.DeepCopy()
	waiting.Name, waiting.UID, waiting.Spec.NodeName = "one-more", types.UID("one-more"), ""
	waiting.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
	for i := range waiting.Spec.Containers {
		waiting.Spec.Containers[i].Resources.Requests = corev1.ResourceList{}
	}
	waiting.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("15"), corev1.ResourceMemory: resource.MustParse("4Gi"),
	}
	mirror := kube.NewMirror(n.store, kube.Settings{EveryPod: true})
	begin := beside.CPU()
	mirror.Apply(client.Object(waiting))
	start := time.Now()
	in, err := n.store.Snapshot().Problem(ctx, n.catalog, fleet.Options{
		Now: n.now, Policy: model.Policy{Budget: budget, Elapsed: func() time.Duration { return time.Since(start) }},
	})
	if err != nil {
		return err
	}
	plan := planner.Solve(in.Problem)
	out.Pod, out.Bought = beside.CPU()-begin, len(plan.NewNodes) > 0
	return nil
}
