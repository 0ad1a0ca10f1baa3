package consolidate

import (
	"maps"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/search"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// Plan decides which nodes to remove. Policy.Budget of the planning problem is the time
// for the search beyond the commands of single nodes, as for the planner. With
// Policy.Elapsed nil it is counted in steps, and the answer is a pure function of the
// problem.
func Plan(f *model.DisruptionProblem) *model.Commands {
	p := compiled.Compile(f)
	eligible := eligibility.New(p)
	main := search.NewEvaluator(state.New(p, eligible))
	reservePending(main.State, nil)
	b := newBuilder(main)
	forcing{b}.replaceAll()
	b.removeEmpty()
	found := search.New(main)
	before, refused := len(b.commands), maps.Clone(b.refused)
	b.makeAll(found.Run())
	if len(b.commands) == before && eligible.AnyPostponed() {
		b.refused = refused
		b.makeAll(found.RunWithinBudgets())
	}
	b.makeSingles()
	out := &model.Commands{Kept: keeping{b}.report(), Commands: b.commands, Rejected: b.rejected, Tried: found.Trials()}
	out.Scores = append(b.scores, eligible.Rules.Unbalanced()...)
	out.Before = sumPrices(f.Problem.Nodes)
	out.After = out.Before
	for i := range out.Commands {
		out.After -= out.Commands[i].Saving
		out.Evictions += out.Commands[i].Evictions
	}
	if f.Bound {
		out.LowerBound = min(out.After, bound{p, eligible}.price())
	}
	return out
}

func sumPrices(nodes []model.Node) model.Money {
	var sum model.Money
	for n := range nodes {
		sum += nodes[n].Price
	}
	return sum
}

// LowerBound is at most the price per hour of any set of nodes that holds the pods of
// the problem: see [model.Commands].
func LowerBound(f *model.DisruptionProblem) model.Money {
	p := compiled.Compile(f)
	return bound{p, eligibility.New(p)}.price()
}
