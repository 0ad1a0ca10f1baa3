package ablation

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/differential"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
)

// The work that a plan may take, counted in the steps that a machine with two cores does
// in about that time.
const (
	ClusterBudget  = 20 * time.Millisecond
	WorkloadBudget = 100 * time.Millisecond
)

// Problem is one problem to plan.
type Problem struct {
	Name string
	// Workload says that the problem is a workload of the benchmark, not a generated
	// cluster.
	Workload bool

	build  func() (*workload.Input, error)
	budget time.Duration
}

// Problems lists the workloads of the benchmark and as many generated clusters of each
// family as it is asked for, with seeds from first on, or from where the family begins if
// first is 0.
func Problems(usual, wide, large int, first uint64) []Problem {
	var out []Problem
	for _, w := range workload.All() {
		out = append(out, Problem{w.Name, true, func() (*workload.Input, error) { return w.Build(0) }, WorkloadBudget})
	}
	family := func(name string, count int, begin uint64, draw func(uint64) (*workload.Input, error)) {
		for i := range count {
			seed := cmp.Or(first, begin) + uint64(i)
			out = append(out, Problem{fmt.Sprintf("%s/%d", name, seed), false, func() (*workload.Input, error) { return draw(seed) }, ClusterBudget})
		}
	}
	family("large", large, 600_000, differential.GenerateLarge)
	family("usual", usual, 400_000, differential.Generate)
	family("wide", wide, 500_000, differential.GenerateWide)
	return out
}

// outcome is what counts of a plan.
type outcome struct {
	// unschedulable is how many pods have no place, givenUp how many preferences of
	// pods were given up.
	unschedulable, givenUp int
	cost, bound            model.Money
}

// betterThan compares plans as the planner does, but for priorities and preferences.
func (o outcome) betterThan(other outcome) bool {
	if o.unschedulable != other.unschedulable {
		return o.unschedulable < other.unschedulable
	}
	return o.cost < other.cost
}

// measured are the outcomes of one problem.
type measured struct {
	problem *Problem
	whole   outcome
	// without are the outcomes by part, in the order of [portfolio.Parts].
	without []outcome
}

// measure plans a problem by the whole portfolio and without each part. A part is left
// out by itself only if leaving out all parts of its kind makes a difference.
func (p *Problem) measure(ctx context.Context, parts []portfolio.Part) (*measured, error) {
	in, err := p.build()
	if err != nil {
		return nil, err
	}
	stated, err := bench.NewNap(in, model.Policy{}).State(ctx)
	if err != nil {
		return nil, err
	}
	stated.Problem.Policy.Budget = p.budget
	m := &measured{problem: p, whole: outcomeOf(planner.Solve(stated.Problem)), without: make([]outcome, len(parts))}
	matters := map[string]bool{}
	for _, whole := range []bool{true, false} {
		for i, part := range parts {
			switch {
			case part.Whole != whole:
			case whole || part.Alone || matters[part.Kind]:
				m.without[i] = outcomeOf(planner.SolveBy(stated.Problem, portfolio.Without(part)))
				matters[part.Kind] = matters[part.Kind] || m.without[i] != m.whole
			default:
				m.without[i] = m.whole
			}
		}
	}
	return m, ctx.Err()
}

func outcomeOf(plan *model.Plan) outcome {
	o := outcome{cost: plan.Cost, bound: plan.LowerBound}
	for i := range plan.Unschedulable {
		o.unschedulable += len(plan.Unschedulable[i].Pods)
	}
	for i := range plan.Relaxed {
		o.givenUp += plan.Relaxed[i].Pods
	}
	return o
}

// Run plans all problems with so many workers, tells after every hundredth how many are
// done, and returns a row for each part.
func Run(ctx context.Context, problems []Problem, workers int, tell func(done int)) ([]Row, error) {
	parts := portfolio.Parts()
	results, failures := make([]*measured, len(problems)), make([]error, workers)
	var mu sync.Mutex
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if next++; next%100 == 0 {
			tell(next)
		}
		return next - 1
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for at := take(); at < len(problems); at = take() {
				m, err := problems[at].measure(ctx, parts)
				if err != nil {
					failures[w] = fmt.Errorf("problem %s: %w", problems[at].Name, err)
					return
				}
				results[at] = m
			}
		})
	}
	wg.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return rows(parts, results), nil
}
