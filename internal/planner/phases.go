package planner

import (
	"cmp"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
)

// phased is a large problem that falls into parts but for some classes, which are planned by
// themselves ([decompose.Common]).
type phased struct {
	problem   *model.Problem
	portfolio *portfolio.Portfolio
	catalogs  *feasible.Catalogs
	sizes     sizes
	// records are what is recorded with each plan that was made.
	records []*model.Replay
}

// solveInPhases plans a problem in two phases, or returns nil where one will do: first the pods
// that fall into parts, then the others, which fill the machines of the first phase and get more.
// Where these are left without a place although they have the higher priority, they come first.
func solveInPhases(p *model.Problem, f *portfolio.Portfolio, s sizes, catalogs *feasible.Catalogs) *model.Plan {
	replay := p.Policy.Replay
	if replay != nil && len(replay.Parts) == 0 {
		return nil // it was planned in one phase
	}
	common := decompose.Common(p, s.divided, s.whole)
	if common == nil {
		return nil
	}
	if catalogs == nil {
		catalogs = feasible.NewCatalogs(p.Catalogs)
	}
	st := &phased{problem: p, portfolio: f, catalogs: catalogs, sizes: s}
	plan := st.plan(common)
	if plan == nil {
		return nil
	}
	if float64(plan.LowerBound) < provenEnough*float64(plan.Cost) {
		plan.LowerBound = min(plan.Cost, max(plan.LowerBound, st.bound(plan)))
	}
	if p.Policy.Elapsed != nil || replay != nil {
		plan.Stats.Replay = &model.Replay{Seed: p.Policy.Seed, Budget: p.Policy.Budget, Parts: st.records}
	}
	return plan
}

// provenEnough is the share of its cost from which on the bound of a plan is near enough.
const provenEnough = 0.995

// bound is a bound of plans that place the same pods, in which the values of open labels make no
// difference, so that pods of both phases share machines.
func (st *phased) bound(plan *model.Plan) model.Money {
	p := decompose.Unbound(st.problem)
	in := compile(p, st.catalogs)
	nodes, _ := placement.Existing(in.Space)
	c := construct.New(in, nodes, placement.Decision{}, construct.Params{})
	placed := make([]int, len(in.Classes))
	for i := range placed {
		placed[i] = len(p.Classes[i].Pods)
	}
	for _, u := range plan.Unschedulable {
		placed[u.Class] -= len(u.Pods)
	}
	target := nodechoice.TargetFor(c.State, placed, c.Index.Worth())
	target.Spilled = true
	return nodechoice.Bound(in, target, &p.Policy, clockOf(p))
}

// plan is the better one of both orders, the second of which is looked at only where it may be
// better; nil where a phase cannot be stated after the other one, or leaves out pods for which the
// whole may have a place.
func (st *phased) plan(common []int) *model.Plan {
	rest, own := decompose.Phases(st.problem, common)
	plan := st.inOrder(&rest, st.solve(rest.Problem), &own)
	isCommon := func(c int) bool { _, is := slices.BinarySearch(common, c); return is }
	if plan == nil {
		return nil
	}
	wanting := unplaced(st.problem, plan, isCommon)
	if len(wanting) == 0 || wanting[0].priority <= lowestPriority(rest.Problem) {
		return plan
	}
	rest, own = decompose.Phases(st.problem, common)
	first := st.solve(own.Problem)
	if compareUnplaced(unplaced(own.Problem, first, nil), wanting) >= 0 {
		return plan
	}
	other := st.inOrder(&own, first, &rest)
	if other != nil && compareUnplaced(unplaced(st.problem, other, nil), unplaced(st.problem, plan, nil)) >= 0 {
		return plan
	}
	return other
}

// scarce reports whether pods without a place may have one on a machine that has been bought for
// others: what is in their way is not what the machines are like.
func scarce(u model.Unschedulable) bool {
	reasons := []model.Reason{
		model.ReasonUnavailable, model.ReasonQuota, model.ReasonReservation, model.ReasonLimit, model.ReasonNodeLimit, model.ReasonCostLimit,
		model.ReasonMinValues, model.ReasonSpread, model.ReasonAffinity, model.ReasonAntiAffinity,
	}
	return slices.Contains(reasons, u.Reason) || slices.ContainsFunc(u.Pools, func(v model.PoolVerdict) bool {
		return slices.ContainsFunc(v.Removed, func(c model.ReasonCount) bool { return slices.Contains(reasons, c.Reason) })
	})
}

// inOrder plans a phase after another one, whose plan is given; nil where it cannot be stated, or
// leaves out pods which a machine may hold that it does not fill.
func (st *phased) inOrder(before *decompose.Part, first *model.Plan, then *decompose.Part) *model.Plan {
	p := st.problem
	plan := decompose.Merge(p, []decompose.Part{*before}, []*model.Plan{first})
	closed := then.Beside(p, plan)
	if decompose.LosesDomains(p, then.Problem) {
		return nil
	}
	if p.Policy.Elapsed != nil || p.Policy.Replay != nil {
		then.Problem.Policy.Budget += before.Problem.Policy.Budget // the clock runs on
	}
	second := st.solve(then.Problem)
	if closed && slices.ContainsFunc(second.Unschedulable, scarce) {
		return nil
	}
	filled := then.Fill(p, plan, second)
	after := decompose.After(p, plan)
	concurrent.Each(len(filled), func(i int) {
		machine := &plan.NewNodes[filled[i]]
		*machine = refit(machine, then.Alone(p, after, machine), st.catalogs)
	})
	plan.Cost = 0
	for i := range plan.NewNodes {
		plan.Cost += plan.NewNodes[i].Best().Price
	}
	plan.LowerBound = min(plan.LowerBound, plan.Cost)
	plan.Stats.FirstCost = max(plan.Stats.FirstCost, plan.Cost)
	decompose.Sort(p, plan)
	return plan
}

// solve plans a phase, as the record with its number says where there is one.
func (st *phased) solve(p *model.Problem) *model.Plan {
	if replay := st.problem.Policy.Replay; replay != nil {
		p.Policy.Replay = nil
		if n := len(st.records); n < len(replay.Parts) {
			p.Policy.Replay = replay.Parts[n]
		}
	}
	plan := solve(p, st.portfolio, st.sizes, st.catalogs)
	st.records = append(st.records, plan.Stats.Replay)
	return plan
}

// refit is a machine of a plan that got more pods, with those of its offerings that hold all of
// them. Alone is the problem of the machine ([decompose.Part.Alone]).
func refit(machine *model.NewNode, alone *model.Problem, catalogs *feasible.Catalogs) model.NewNode {
	g := Prepare(alone, catalogs)
	found := *machine
	found.Pool = 0
	levels := make([]int, len(machine.Pods))
	option := g.Space.OptionOf(&found, func(option int) bool {
		for i := range levels {
			levels[i] = slices.IndexFunc(g.Classes[i].Levels, func(l PreparedLevel) bool { return l.Options.Has(option) })
		}
		return !slices.Contains(levels, -1)
	})
	if option < 0 { // what is planned holds them in any case
		return onlyBest(machine, alone)
	}
	var pods []PodsOn
	for i, level := range levels {
		pods = append(pods, PodsOn{Class: i, Level: level, Count: len(machine.Pods[i].Pods)})
	}
	out, _ := g.Machine(g.Space.NewLedger(), option, pods)
	out.Pool, out.Pods = machine.Pool, machine.Pods
	return out
}

// onlyBest is a machine with its best offering alone.
func onlyBest(machine *model.NewNode, alone *model.Problem) model.NewNode {
	out := *machine
	out.Offerings, out.Requests = out.Offerings[:1], nil
	for i, pods := range out.Pods {
		for range pods.Pods {
			out.Requests = out.Requests.Add(alone.Classes[i].Requests)
		}
	}
	return out
}

// waiting are pods of a priority.
type waiting struct {
	priority int32
	pods     int
}

// unplaced is how many pods of each priority a plan leaves without a place, the highest first, of
// those classes that are asked for, nil for all.
func unplaced(p *model.Problem, plan *model.Plan, asked func(class int) bool) []waiting {
	counts := map[int32]int{}
	for _, u := range plan.Unschedulable {
		if asked == nil || asked(u.Class) {
			counts[p.Classes[u.Class].Priority] += len(u.Pods)
		}
	}
	var out []waiting
	for priority, n := range counts {
		out = append(out, waiting{priority, n})
	}
	slices.SortFunc(out, func(a, b waiting) int { return cmp.Compare(b.priority, a.priority) })
	return out
}

// compareUnplaced compares what two plans leave without a place: less than 0 where the first one
// is better.
func compareUnplaced(a, b []waiting) int {
	return slices.CompareFunc(a, b, func(x, y waiting) int {
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(x.pods, y.pods))
	})
}

// lowestPriority is that of all classes.
func lowestPriority(p *model.Problem) int32 {
	lowest := int32(math.MaxInt32)
	for i := range p.Classes {
		lowest = min(lowest, p.Classes[i].Priority)
	}
	return lowest
}
