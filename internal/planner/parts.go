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
}

// standardSizes are those of all plans.
func standardSizes() sizes { return sizes{divided: decompose.From, explained: 1 << 26} }

// solveParts plans the parts of a problem that do not depend on each other, several at the
// same time, or returns nil: there are no such parts, or together they take more than quotas
// and reservations hold, so that the whole must decide who gets it.
func solveParts(p *model.Problem, f *portfolio.Portfolio, s sizes) *model.Plan {
	replay := p.Policy.Replay
	if replay != nil && len(replay.Parts) == 0 {
		return nil // it was planned as a whole
	}
	parts := decompose.Split(p, s.divided)
	if parts == nil || replay != nil && len(replay.Parts) < len(parts) {
		return nil
	}
	plans, catalogs := make([]*model.Plan, len(parts)), feasible.NewCatalogs(p.Catalogs)
	solve := func(part *decompose.Part, i int) *model.Plan {
		if replay != nil {
			part.Problem.Policy.Replay = replay.Parts[i]
		}
		return solveWhole(part.Problem, f, catalogs)
	}
	concurrent.Each(len(parts), func(i int) { plans[i] = solve(&parts[i], i) })
	records := recordsOf(plans)
	if rest, which := decompose.Unplaced(p, parts, plans); rest != nil && rest.Cells() <= s.explained &&
		(replay == nil || len(replay.Parts) > len(parts)) {
		plan := solve(rest, len(parts))
		records = append(records, plan.Stats.Replay)
		parts, plans = decompose.Replace(parts, plans, which, rest, plan)
	}
	plan := decompose.Merge(p, parts, plans)
	if !decompose.Suffices(p, plan) {
		return nil
	}
	if p.Policy.Elapsed != nil || replay != nil {
		plan.Stats.Replay = &model.Replay{Seed: p.Policy.Seed, Budget: p.Policy.Budget, Parts: records}
	}
	return plan
}

func recordsOf(plans []*model.Plan) []*model.Replay {
	records := make([]*model.Replay, len(plans))
	for i := range plans {
		records[i] = plans[i].Stats.Replay
	}
	return records
}
