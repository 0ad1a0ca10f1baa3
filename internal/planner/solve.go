package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
	"github.com/nodeautoprovision/nap/internal/planner/domainconflict"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/fewer"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/offers"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Solve plans the problem. It always returns a plan: pods that cannot be placed are in
// Unschedulable with their reason, and malformed pods, pools and catalogue entries are
// refused one by one without spoiling the rest. No goroutine outlives it.
func Solve(p *model.Problem) *model.Plan { return SolveBy(p, portfolio.Standard()) }

// SolveBy is [Solve] by another portfolio than the standard one. It is there to measure
// what the parts of the portfolio earn.
func SolveBy(p *model.Problem, f *portfolio.Portfolio) *model.Plan {
	return solve(p, f, standardSizes(), nil)
}

// solve plans a problem in parts, in phases or as one. Catalogs may be those that it shares with others.
func solve(p *model.Problem, f *portfolio.Portfolio, s sizes, catalogs *feasible.Catalogs) *model.Plan {
	if replay := p.Policy.Replay; replay != nil {
		again := *p
		again.Policy.Seed, again.Policy.Budget = replay.Seed, replay.Budget
		p = &again
	}
	if plan := solveParts(p, f, s); plan != nil {
		return plan
	}
	if plan := solveInPhases(p, f, s, catalogs); plan != nil {
		return plan
	}
	return solveWhole(p, f, catalogs)
}

// solveWhole plans a problem as one. Catalogs may be those that it shares with others.
func solveWhole(p *model.Problem, f *portfolio.Portfolio, catalogs *feasible.Catalogs) *model.Plan {
	in := compile(p, catalogs)
	nodes, rejected := placement.Existing(in.Space)
	clock := clockOf(p)
	prover := nodechoice.NewProver(in, clock)
	defer prover.Wait()
	o := f.Search(in, nodes, prover, clock)
	s := o.Plan.State
	domainconflict.DropViolating(s)
	var bound model.Money
	var less model.FewerMachines
	early := f.PaysForFewer() && fewer.Possible(s)
	if early {
		bound = boundOf(&o, prover)
		less = fewer.Replace(s, bound)
	}
	plan := offers.Plan(s)
	plan.Rejected = slices.Concat(plan.Rejected, rejected)
	plan.Stats.FirstCost = max(o.Result.First, plan.Cost)
	plan.Stats.Rounds = o.Result.Rounds
	plan.Fewer = less
	if !early {
		bound = boundOf(&o, prover)
	}
	plan.LowerBound = min(bound, plan.Cost)
	explainLeft(s, plan)
	prover.Wait()
	if record, ok := clock.Record(); ok {
		plan.Stats.Replay = &model.Replay{
			Seed: p.Policy.Seed, Budget: p.Policy.Budget, Readings: record.Readings, Late: record.Late, Stops: record.Stops,
		}
	}
	return plan
}

// compile compiles a problem. Pods which nothing holds that their NodePools sell are
// explained by all NodePools: one that they do not tolerate may be the one that they need.
func compile(p *model.Problem, catalogs *feasible.Catalogs) *instance.Instance {
	in := instance.New(feasible.New(p, catalogs))
	if in.Hopeless() && in.Space.Whole() != in.Space {
		return instance.New(in.Space.Whole())
	}
	return in
}

// boundOf is the bound of a plan, or zero if nothing is bought.
func boundOf(o *portfolio.Outcome, prover *nodechoice.Prover) model.Money {
	s := o.Plan.State
	switch {
	case o.Result.Exact && o.Result.Unplaced == 0:
		return o.Result.Bound
	case len(s.NewNodes) > 0:
		return prover.Bound(o.Proof, nodechoice.TargetOf(s, o.Plan.Index.Worth()), s.Instance.Policy())
	}
	return 0
}

// clockOf is the clock of a plan: one that keeps a record of the policy's, or follows the
// record that the policy has. A plan without a budget never depends on the time.
func clockOf(p *model.Problem) meter.Clock {
	policy := &p.Policy
	switch {
	case policy.Budget <= 0:
		return meter.Clock{}
	case policy.Replay != nil:
		r := meter.Record{Readings: policy.Replay.Readings, Late: policy.Replay.Late, Stops: policy.Replay.Stops}
		return meter.Replaying(r).Within(cutLimits(p))
	case policy.Elapsed != nil:
		return meter.Recording(policy.Elapsed).Within(cutLimits(p))
	}
	return meter.Steps()
}

const (
	// steadyPods is up to how many pods the plan is the same however slow the machine is,
	// unless it takes patience times its budget.
	steadyPods = 1_000
	patience   = 40
	// floor is the share of its steps that a search of more pods makes whatever the time.
	floor = 0.25
)

// cutLimits is how much a clock may cut the search for a plan.
func cutLimits(p *model.Problem) meter.CutLimits {
	if p.PodCount() <= steadyPods {
		return meter.CutLimits{Patience: patience}
	}
	return meter.CutLimits{Floor: floor}
}

// explainLeft says why pods have no place, in two goroutines, each for every second
// class: some are quickly said and others not.
func explainLeft(s *placement.State, plan *model.Plan) {
	if len(plan.Unschedulable) == 0 {
		return
	}
	waits := waitsFor(s, plan)
	half := func(s *placement.State, from int) {
		single := placement.NewSinglePods(s)
		short := func(class, option int, load []int64) *explain.Scant {
			if m := single.Short(class, option, load); m != nil {
				return &explain.Scant{Key: m.Key, Have: m.Have, Want: m.Want}
			}
			return nil
		}
		e := &explain.Explainer{
			Space: s.Instance.Space, Counts: s.Domains.Counts, Ledger: s.Ledger, Scant: short, Waits: waits, Shut: s.Decision.Shut,
		}
		for i := from; i < len(plan.Unschedulable); i += 2 {
			u := &plan.Unschedulable[i]
			c := &s.Instance.Classes[u.Class]
			if c.Invalid != "" {
				u.Reason, u.Message = model.ReasonPodInvalid, c.Invalid
				if c.Spec.Quarantined != "" {
					u.Reason = model.ReasonPlanningFailed
				}
				continue
			}
			e.Explain(u, c.Spec, s.Instance.HardRules(c.Index))
		}
	}
	other := s.Detach()
	concurrent.Both(func() { half(s, 0) }, func() { half(other, 1) })
}

// waitsFor tells of the rules of a class whether pods of another one that it must be near have no
// place in the plan.
func waitsFor(s *placement.State, plan *model.Plan) func(*topology.Rules) bool {
	left := map[int][]int{} // the classes that have pods left, by the counters that count these
	for i := range plan.Unschedulable {
		class := plan.Unschedulable[i].Class
		if s.Instance.Classes[class].Invalid != "" {
			continue
		}
		for _, counter := range s.Instance.Topology.Adds(class) {
			left[int(counter)] = append(left[int(counter)], class)
		}
	}
	return func(rules *topology.Rules) bool {
		return slices.ContainsFunc(rules.Affinity, func(a topology.Affinity) bool {
			return slices.ContainsFunc(left[a.Counter], func(class int) bool { return class != rules.Class })
		})
	}
}
