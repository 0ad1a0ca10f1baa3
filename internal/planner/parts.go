package planner

import (
	"slices"

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

// solveAll plans all parts, with numbers in the place of names where that can be: of those that differ
// in names alone one for all, and others share what is compiled.
func (d *divided) solveAll() {
	alike := decompose.FindAlike(d.problem, d.parts)
	d.solveEach(func(i int) *model.Problem {
		if alike.First(i) != i {
			return nil
		}
		own := alike.Problem(i, d.parts[i].Problem)
		d.follow(own, i)
		return own
	})
	numbered := slices.Clone(d.plans)
	for i := range d.plans {
		d.plans[i] = alike.Plan(i, numbered[alike.First(i)])
	}
	d.solveEach(func(i int) *model.Problem {
		if d.plans[i] != nil {
			return nil
		}
		own := *d.parts[i].Problem
		own.Policy.Replay = numbered[alike.First(i)].Stats.Replay
		return &own
	})
	for i, plan := range d.plans {
		d.records[i] = plan.Stats.Replay
	}
}

// solveEach plans parts, by number, by the problems that it is given for them, nil for none, several
// at the same time.
func (d *divided) solveEach(problem func(i int) *model.Problem) {
	concurrent.Each(len(d.parts), func(i int) {
		if p := problem(i); p != nil {
			d.plans[i] = d.solve(p)
			d.lists.share(d.plans[i])
		}
	})
}

// solve plans the problem of a part.
func (d *divided) solve(p *model.Problem) *model.Plan {
	if plan := solveInPhases(p, d.portfolio, d.sizes, d.catalogs); plan != nil {
		return plan
	}
	return solveWhole(p, d.portfolio, d.catalogs)
}

// follow makes the problem of a part follow the record with a number, where records are followed.
func (d *divided) follow(p *model.Problem, record int) {
	if replay := d.problem.Policy.Replay; replay != nil {
		p.Policy.Replay = nil
		if record < len(replay.Parts) {
			p.Policy.Replay = replay.Parts[record]
		}
	}
}

// solveNext plans a part after all others, and records it.
func (d *divided) solveNext(part *decompose.Part) *model.Plan {
	d.follow(part.Problem, len(d.records))
	plan := d.solve(part.Problem)
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
