package planner

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
)

// sizes say when a problem is planned in parts.
type sizes struct {
	// divided is from how many offerings of all NodePools on.
	divided int
	// explained is the most cells, classes by offerings, of a problem whose pods without a
	// place are explained by all NodePools.
	explained int
	// whole is the most cells of a problem that is planned as one where its parts together
	// take more than there is, or where it falls into parts but for some classes.
	whole int
}

// standardSizes are those of all plans.
func standardSizes() sizes { return sizes{divided: decompose.From, explained: 1 << 26, whole: 1 << 24} }

// divided is a problem that is planned in parts.
type divided struct {
	problem   *model.Problem
	portfolio *portfolio.Portfolio
	catalogs  *feasible.Catalogs
	sizes     sizes
	parts     []decompose.Part
	// plans are those of the parts, records what is recorded with each plan that was made.
	plans   []*model.Plan
	records []*model.Replay
	// lists are those of the plans.
	lists offeringLists
}

// solveParts plans the parts of a problem that do not depend on each other, several at the
// same time, or returns nil: there are no such parts, or together they take more than quotas,
// reservations and limits hold, so that the whole must decide who gets it, unless it is too
// large for that.
func solveParts(p *model.Problem, f *portfolio.Portfolio, s sizes) *model.Plan {
	replay := p.Policy.Replay
	if replay != nil && len(replay.Parts) == 0 {
		return nil // it was planned as a whole
	}
	d := &divided{problem: p, portfolio: f, sizes: s, parts: decompose.Split(p, s.divided), catalogs: feasible.NewCatalogs(p.Catalogs)}
	n := len(d.parts)
	if n == 0 || replay != nil && len(replay.Parts) < n {
		return nil
	}
	d.plans, d.records = make([]*model.Plan, n), make([]*model.Replay, n)
	d.solveAll()
	d.explainByAll()
	plan := decompose.Merge(p, d.parts, d.plans)
	if !decompose.Suffices(p, plan) {
		if decompose.Cells(p) <= s.whole || !d.solveInTurn() {
			return nil
		}
		plan = decompose.Merge(p, d.parts, d.plans)
	}
	if p.Policy.Elapsed != nil || replay != nil {
		plan.Stats.Replay = &model.Replay{Seed: p.Policy.Seed, Budget: p.Policy.Budget, Parts: d.records}
	}
	return plan
}

// solveAll plans all parts, of those that differ in names alone one for all where that can be.
func (d *divided) solveAll() {
	alike := decompose.FindAlike(d.problem, d.parts)
	d.solveEach(func(i int) bool { return alike.First(i) == i })
	for i, plan := range d.plans {
		if plan == nil {
			d.plans[i] = alike.Plan(i, d.plans[alike.First(i)])
		}
	}
	d.solveEach(func(i int) bool { return d.plans[i] == nil })
	for i, plan := range d.plans {
		d.records[i] = plan.Stats.Replay
	}
}

// solveEach plans those of the parts that are wanted, by number, several at the same time.
func (d *divided) solveEach(wanted func(i int) bool) {
	var which []int
	for i := range d.parts {
		if wanted(i) {
			which = append(which, i)
		}
	}
	concurrent.Each(len(which), func(k int) {
		i := which[k]
		d.plans[i] = d.solve(&d.parts[i], i)
		d.lists.share(d.plans[i])
	})
}

// solve plans a part, as the record with a number says where there is one.
func (d *divided) solve(part *decompose.Part, record int) *model.Plan {
	if replay := d.problem.Policy.Replay; replay != nil {
		part.Problem.Policy.Replay = nil
		if record < len(replay.Parts) {
			part.Problem.Policy.Replay = replay.Parts[record]
		}
	}
	if plan := solveInPhases(part.Problem, d.portfolio, d.sizes, d.catalogs); plan != nil {
		return plan
	}
	return solveWhole(part.Problem, d.portfolio, d.catalogs)
}

// solveNext plans a part after all others, and records it.
func (d *divided) solveNext(part *decompose.Part) *model.Plan {
	plan := d.solve(part, len(d.records))
	d.records = append(d.records, plan.Stats.Replay)
	return plan
}

// explainByAll plans pods that have no place again beside all NodePools, so that the reasons
// speak of all of them.
func (d *divided) explainByAll() {
	rest, which := decompose.Unplaced(d.problem, d.parts, d.plans)
	replay := d.problem.Policy.Replay
	if rest == nil || decompose.Cells(rest.Problem) > d.sizes.explained || replay != nil && len(replay.Parts) == len(d.parts) {
		return
	}
	plan := d.solveNext(rest)
	d.parts, d.plans = decompose.Replace(d.parts, d.plans, which, rest, plan)
}

// solveInTurn plans those parts again, one after the other, for which those before have left too
// little, and reports whether it could. It comes to parts with pods of higher priority first. What
// it plans again has no bound: the whole may leave more to it.
func (d *divided) solveInTurn() bool {
	supply := decompose.NewSupply(d.problem)
	for _, i := range decompose.ByPriority(d.parts) {
		if supply.Take(&d.parts[i], d.plans[i]) {
			continue
		}
		if supply.Reserved() {
			return false
		}
		left := supply.Left(&d.parts[i])
		if decompose.LosesDomains(d.parts[i].Problem, left.Problem) {
			return false
		}
		plan := d.solveNext(left)
		plan.LowerBound = 0
		if !supply.Take(&d.parts[i], plan) {
			return false
		}
		d.plans[i] = plan
	}
	return true
}
