package planner

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
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

// solveParts plans the parts of a problem that do not depend on each other, one after the
// other, or returns nil: there are no such parts, or together they take more than quotas and
// reservations hold, so that the whole must decide who gets it.
func solveParts(p *model.Problem, f *portfolio.Portfolio, s sizes) *model.Plan {
	replay := p.Policy.Replay
	if replay != nil && len(replay.Parts) == 0 {
		return nil // it was planned as a whole
	}
	parts := decompose.Split(p, s.divided)
	if parts == nil || replay != nil && len(replay.Parts) < len(parts) {
		return nil
	}
	plans, records := make([]*model.Plan, len(parts)), make([]*model.Replay, 0, len(parts))
	solve := func(p *model.Problem) *model.Plan {
		if replay != nil {
			if len(records) == len(replay.Parts) {
				return nil
			}
			p.Policy.Replay = replay.Parts[len(records)]
		}
		plan := solveWhole(p, f)
		records = append(records, plan.Stats.Replay)
		return plan
	}
	for i := range parts {
		plans[i] = solve(parts[i].Problem)
	}
	if rest, which := decompose.Unplaced(p, parts, plans); rest != nil && rest.Cells() <= s.explained {
		if plan := solve(rest.Problem); plan != nil {
			parts, plans = decompose.Replace(parts, plans, which, rest, plan)
		}
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
