package fleets

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/model"
)

// consolidator is an engine that consolidates a life's cluster. nap's planner plans
// the pods that wait for either engine, so that only consolidation differs.
type consolidator interface {
	// minute decides and makes what it decided, in what one minute leaves time for.
	minute(ctx context.Context, now time.Time) (Figures, error)
}

// napMinutes asks once a minute.
type napMinutes struct {
	*nap
	audit func(*model.DisruptionProblem, *model.Commands) error
}

func (n *napMinutes) minute(ctx context.Context, now time.Time) (Figures, error) {
	n.now = now
	start := time.Now()
	in, moves, err := n.ask(ctx, 0)
	if err != nil {
		return Figures{}, err
	}
	f := Figures{All: time.Since(start), Evictions: moves.Evictions}
	if n.audit != nil {
		if err := n.audit(in.Disruption, moves); err != nil {
			return f, err
		}
	}
	before := n.Cost()
	for i := range moves.Commands {
		mv := &moves.Commands[i]
		f.Removed += len(mv.Nodes)
		first := n.made
		if err := n.make(in, mv); err != nil {
			return f, err
		}
		n.remember(in.Disruption, mv, first)
	}
	if after := n.Cost(); after > before+1e-6 {
		return f, fmt.Errorf("consolidation made the fleet dearer: $%.4f/h became $%.4f/h", before, after)
	}
	return f, nil
}

// remember writes on the machines that a move bought what it is to save, as the
// controller does, so that their pods do not move again for the same money.
func (n *nap) remember(f *model.DisruptionProblem, mv *model.Command, first int) {
	earned := mv.Saving
	for _, node := range mv.Nodes {
		earned += f.Usages[node].ExpectedSaving
	}
	for i := first + 1; i <= n.made; i++ {
		claim := n.nodes[nodeName(i)].claim
		share := earned.Dollars() * mv.New[i-first-1].Best().Price.Dollars() / total(mv.New)
		claim.Annotations = map[string]string{v1beta1.AnnotationExpectedSaving: strconv.FormatFloat(share, 'f', 6, 64)}
		n.put(claim)
	}
}

func total(machines []model.NewNode) float64 {
	sum := 0.0
	for i := range machines {
		sum += machines[i].Best().Price.Dollars()
	}
	return sum
}

// karpenterMinutes asks as often as Karpenter's validation leaves time for: four
// times a minute.
type karpenterMinutes struct{ engine *karpenter }

func (k *karpenterMinutes) minute(ctx context.Context, now time.Time) (Figures, error) {
	ctx = karpenterengine.Context(ctx, controller)
	k.engine.decider.clock.SetTime(now)
	k.consolidatable(now)
	f := Figures{}
	for range 4 {
		start := time.Now()
		commands, err := k.engine.decider.ask(ctx)
		f.All += time.Since(start)
		if err != nil || len(commands) == 0 {
			return f, err
		}
		for i := range commands {
			if err := k.engine.make(&commands[i], &f); err != nil {
				return f, err
			}
		}
		k.consolidatable(now)
	}
	return f, nil
}

// consolidatable keeps the condition that says which nodes have been quiet for
// long enough, as Karpenter's own controller does.
func (k *karpenterMinutes) consolidatable(now time.Time) {
	cluster := k.engine.cluster
	for _, name := range sorted(cluster.nodes) {
		c := cluster.nodes[name].claim
		since := c.Status.LastPodEventTime.Time
		if c.CreationTimestamp.After(since) {
			since = c.CreationTimestamp.Time
		}
		quiet := !since.Add(quietFor).After(now)
		if is := c.StatusConditions().IsTrue(v1.ConditionTypeConsolidatable); is == quiet {
			continue
		}
		if quiet {
			c.StatusConditions().SetTrue(v1.ConditionTypeConsolidatable)
		} else {
			_ = c.StatusConditions().Clear(v1.ConditionTypeConsolidatable)
		}
		cluster.put(c)
	}
}
