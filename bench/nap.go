package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// Figures are what was measured of one engine on one workload.
type Figures struct {
	// Read is the time from objects to the problem, First from objects to the
	// first feasible plan, Final from objects to the best plan within the budget.
	// Karpenter has but one plan, and its time is Final.
	Read, First, Final time.Duration
	// Allocs counts allocations, Peak is bytes of heap above the input.
	Allocs, Peak uint64
	// Classes is how many kinds of pods nap found, Bound its lower bound in
	// dollars per hour, FirstCost the cost of its first plan.
	Classes          int
	Bound, FirstCost float64
	// Nodes are machines to buy, Cost dollars per hour, Unschedulable pods.
	Nodes         int
	Cost          float64
	Unschedulable int
	// TimedOut says that the engine was stopped before it had looked at all pods.
	TimedOut bool
}

// Nap plans one input. The catalogue is converted once, as the controller does.
type Nap struct {
	input   *workload.Input
	catalog beside.Catalog
	// Policy is how to plan; Elapsed is set by Plan.
	Policy model.Policy
}

// NewNap prepares planning of the input.
func NewNap(in *workload.Input, policy model.Policy) *Nap {
	return &Nap{input: in, catalog: beside.NewCatalog(in.InstanceTypes), Policy: policy}
}

// State reads the objects and states the problem.
func (n *Nap) State(ctx context.Context) (*fleet.Input, error) {
	store := kube.FromFiles(n.input.Objects)
	return store.Snapshot().Problem(ctx, n.catalog, fleet.Options{Policy: n.Policy, Now: time.Unix(0, 0)})
}

// Solve plans within the budget, which is counted from now on.
func (n *Nap) Solve(in *fleet.Input, budget time.Duration) *model.Plan {
	start := time.Now()
	in.Problem.Policy.Budget = budget
	in.Problem.Policy.Elapsed = func() time.Duration { return time.Since(start) }
	return planner.Solve(in.Problem)
}

// SolveSteps plans with the work that fits into about that time instead of time
// itself: the same problem always gives the same plan.
func (n *Nap) SolveSteps(in *fleet.Input, about time.Duration) *model.Plan {
	in.Problem.Policy.Budget, in.Problem.Policy.Elapsed = about, nil
	return planner.Solve(in.Problem)
}

// Measure times first and final plans, repeat times each, short first plans more
// often (see [Nap.firstPlans]), and checks them.
func (n *Nap) Measure(ctx context.Context, budget time.Duration, repeat int) (*Figures, error) {
	f := &Figures{}
	if err := n.firstPlans(ctx, f, repeat); err != nil {
		return nil, err
	}
	var final []time.Duration
	var plan *model.Plan
	var in *fleet.Input
	for range repeat {
		begin := settle()
		var err error
		if in, err = n.State(ctx); err != nil {
			return nil, err
		}
		plan = n.Solve(in, budget)
		final = append(final, begin.since())
		f.Allocs = begin.allocs()
		if err := judge(verify.CheckPlaces(in.Problem, plan)); err != nil {
			return nil, fmt.Errorf("final plan: %w", err)
		}
	}
	f.Final = median(final)
	f.describe(in, plan)
	if n.input.Pods() <= fullCheck {
		if err := judge(verify.Check(in.Problem, plan)); err != nil {
			return nil, fmt.Errorf("final plan: %w", err)
		}
	}
	var err error
	f.Peak = beside.Peak(time.Millisecond, func() {
		if in, err = n.State(ctx); err == nil {
			n.Solve(in, budget)
		}
	})
	return f, err
}

// Short first plans are repeated as often as fits into shortPlans, up to mostPlans
// times: a few milliseconds vary from run to run by more than they differ.
const (
	shortPlans = 200 * time.Millisecond
	mostPlans  = 15
)

// firstPlans times reading and first plans, repeat times or more often.
func (n *Nap) firstPlans(ctx context.Context, f *Figures, repeat int) error {
	var read, first []time.Duration
	var plan *model.Plan
	var in *fleet.Input
	for spent := time.Duration(0); len(first) < repeat || len(first) < mostPlans && spent < shortPlans; {
		begin := settle()
		var err error
		if in, err = n.State(ctx); err != nil {
			return err
		}
		read = append(read, begin.since())
		plan = n.Solve(in, 0)
		took := begin.since()
		first, spent = append(first, took), spent+took
	}
	f.Read, f.First, f.FirstCost = median(read), median(first), plan.Cost.Dollars()
	if err := judge(verify.CheckPlaces(in.Problem, plan)); err != nil { // they are all the same
		return fmt.Errorf("first plan: %w", err)
	}
	return nil
}

func (f *Figures) describe(in *fleet.Input, plan *model.Plan) {
	f.Classes, f.Nodes = len(in.Problem.Classes), len(plan.NewNodes)
	f.Cost, f.Bound = plan.Cost.Dollars(), plan.LowerBound.Dollars()
	f.Unschedulable = len(in.Rejected)
	for _, u := range plan.Unschedulable {
		f.Unschedulable += len(u.Pods)
	}
}

// fullCheck is up to how many pods topology is checked too: the checker replays
// the placement pod by pod, which takes minutes beyond.
const fullCheck = 5_000

// judge fails on a plan that breaks any rule.
func judge(broken []verify.Violation) error {
	if len(broken) > 0 {
		return fmt.Errorf("breaks %d rules, first: %s", len(broken), broken[0])
	}
	return nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
