package consolidate

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/search"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
	"github.com/nodeautoprovision/nap/internal/planner/decompose"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Plan decides which nodes to remove. Policy.Budget of the planning problem is the time
// for the search beyond the commands of single nodes, as for the planner. With
// Policy.Elapsed nil it is counted in steps, and the answer is a pure function of the
// problem.
func Plan(f *model.DisruptionProblem) *model.Commands { return plan(f, decompose.From) }

func plan(f *model.DisruptionProblem, from int) *model.Commands {
	if out := planParts(f, from); out != nil {
		return out
	}
	out, _ := planWhole(f, nil)
	return out
}

// planParts plans the parts of a problem that do not depend on each other, several at the same
// time, or returns nil: there are no such parts, or together they take more than quotas and
// reservations hold.
func planParts(f *model.DisruptionProblem, from int) *model.Commands {
	parts := decompose.SplitDisruption(f, from)
	if parts == nil {
		return nil
	}
	answers, bought := make([]*model.Commands, len(parts)), &model.Plan{}
	pending, catalogs := make([][]model.NewNode, len(parts)), feasible.NewCatalogs(f.Problem.Catalogs)
	concurrent.Each(len(parts), func(i int) { answers[i], pending[i] = planWhole(parts[i].Problem, catalogs) })
	for i := range parts {
		bought.NewNodes = append(bought.NewNodes, parts[i].NewNodes(pending[i])...)
	}
	out := decompose.MergeCommands(f, parts, answers, newMerger(f))
	for i := range out.Commands {
		bought.NewNodes = append(bought.NewNodes, out.Commands[i].New...)
	}
	if !decompose.Suffices(f.Problem, bought) {
		return nil
	}
	return out
}

// planWhole plans a problem as one. Catalogs may be those that it shares with others. It also
// returns the new nodes that it has kept room for, in limits and quotas, since pods wait for
// them.
//
// Where pods are spread over capacity types and spot nodes may only be replaced beside on-demand
// ones, commands that keep pods on their capacity type and commands that mix them are both made,
// and those that save more are taken: which these are depends on the fleet.
func planWhole(f *model.DisruptionProblem, catalogs *feasible.Catalogs) (out *model.Commands, pending []model.NewNode) {
	out, pending = planStaying(f, catalogs, true)
	if spreadOverCapacityTypes(f) {
		if mixed, others := planStaying(f, catalogs, false); mixed.After < out.After {
			return mixed, others
		}
	}
	return out, pending
}

// spreadOverCapacityTypes reports whether pods are spread over capacity types in a fleet with spot
// nodes which spot alone may not replace.
func spreadOverCapacityTypes(f *model.DisruptionProblem) bool {
	spread := func(c model.MovableClass) bool {
		return slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return s.TopologyKey == model.LabelCapacityType })
	}
	spot := func(n model.Node) bool { return n.Labels[model.LabelCapacityType] == string(model.Spot) }
	return !f.Terms.SpotToSpot && slices.ContainsFunc(f.Movable, spread) && slices.ContainsFunc(f.Problem.Nodes, spot)
}

// planStaying is planWhole, where commands keep pods on their capacity type if they can, or do not care.
func planStaying(
	f *model.DisruptionProblem, catalogs *feasible.Catalogs, capacityTypes bool,
) (out *model.Commands, pending []model.NewNode) {
	p := compiled.Compile(f, catalogs)
	eligible := eligibility.New(p)
	main := search.NewEvaluator(state.New(p, eligible))
	pending = reservePending(main.State, nil)
	b := newBuilder(main, capacityTypes)
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
	out = &model.Commands{Kept: keeping{b}.report(), Commands: b.commands, Rejected: b.rejected, Tried: found.Trials()}
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
	return out, pending
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
	p := compiled.Compile(f, nil)
	return bound{p, eligibility.New(p)}.price()
}
