package search

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// Constants of the goal.
const (
	// goalShare is the share of the time for the goal, partShare that up to which the
	// part which budgets allow is sought after it.
	goalShare, partShare = 0.4, 0.8
	// mostAnswers is in how many answers a goal must be reached to be worth seeking.
	mostAnswers = 32
)

// Run finds what the cluster should become now, as a difference from its state.
//
// Budgets bound what may happen at once, not what the cluster should become in the
// end. So the search first asks what would be best if they allowed everything. If
// they do, that is the answer. Otherwise it is the goal: the nodes that it removes take
// in no pods any more, which would only move again, and as many of them as budgets
// allow now are removed in the best way. All others are kept: they have much room today
// because the pods of nodes that go later are not there yet.
func (s *Search) Run() *state.SubPlan {
	s.ignoreBudgets(true)
	s.seed(s.overpricedSets()...)
	if s.weighty(s.candidates()) {
		s.meter.Until(goalShare)
		s.descend()
	}
	goal := s.state().Difference()
	s.ignoreBudgets(false)
	now, later := s.ration(goal.Nodes)
	switch {
	case len(later) == 0:
		s.meter.Until(1)
		s.descend()
	case len(goal.Nodes) > mostAnswers*len(now):
		return s.RunWithinBudgets()
	default:
		s.workers.undo()
		if s.p.EvictionPrice > 0 {
			s.state().Eligible.KeepForPods(goal.Nodes)
		}
		s.meter.Until(partShare)
		s.seed(now)
		s.descend()
	}
	return s.state().Difference()
}

// RunWithinBudgets forgets the goal and looks for whatever pays now, within budgets.
func (s *Search) RunWithinBudgets() *state.SubPlan {
	s.state().Eligible.ForgetGoal()
	s.workers.undo()
	s.meter.Until(1)
	s.descend()
	return s.state().Difference()
}

func (s *Search) ignoreBudgets(ignored bool) {
	s.workers.each(func(e *Evaluator) { e.State.Budgets.Ignored = ignored })
}

// ration says which of the nodes that the goal removes may go now, those that save
// most for their evictions first, and notes on the others what they wait for.
// Precondition: the nodes are removed, and budgets are not ignored.
func (s *Search) ration(nodes []int32) (now, later []int32) {
	st := s.state()
	score := map[int32]float64{}
	for _, n := range nodes {
		node := &s.p.Nodes[n]
		score[n] = (float64(node.Price) - node.EvictionCost - s.p.ValueOfPods(node)) / (1 + float64(node.Evictions))
	}
	order := slices.Clone(nodes)
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(score[y], score[x]) })
	budgets := st.Budgets.Clone()
	for _, n := range nodes {
		budgets.Count(n, -1)
	}
	for _, n := range order {
		if budgets.Allow(n) {
			budgets.Count(n, 1)
			now = append(now, n)
			continue
		}
		later = append(later, n)
		st.Eligible.Postpone(n, budgets.BlockConsolidation(n))
	}
	slices.Sort(now)
	return now, later
}
