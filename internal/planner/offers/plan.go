package offers

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// Plan turns a state into a plan, without a bound and without reasons for the pods that
// have no place. It sorts the state's new nodes and plans each as its best offering.
//
// Pods of a class are numbered in the order of existing nodes, new nodes, and then those
// without a place. The order of new nodes does not depend on the order of buying, so equal
// states give equal plans. Afterwards the index of a new node no longer follows from its ID.
func Plan(s *placement.State) *model.Plan {
	p := s.Instance.Space.Problem
	plan := &model.Plan{Rejected: s.Instance.Space.Rejected, Stats: model.Stats{Engine: "nap", Steps: s.Steps}}
	n := newNumbering(p)
	for _, pl := range s.Nodes {
		if len(pl.Pods) > 0 {
			plan.Placements = append(plan.Placements, model.Placement{Node: pl.Node, Pods: n.pods(pl)})
		}
	}
	slices.SortStableFunc(s.NewNodes, compareNodes)
	a := New(s.Instance)
	for _, pl := range s.NewNodes {
		node := a.NewNode(s, pl)
		node.Pods = n.pods(pl)
		plan.NewNodes = append(plan.NewNodes, node)
		plan.Cost += node.Best().Price
	}
	for i := range p.Classes {
		if left := len(p.Classes[i].Pods) - n.next[i]; left > 0 {
			plan.Unschedulable = append(plan.Unschedulable, model.Unschedulable{Class: i, Pods: n.take(i, left)})
		}
	}
	plan.Relaxed = relaxed(s)
	return plan
}

// compareNodes orders new nodes by their option, then by the pods that they hold.
func compareNodes(a, b *placement.Place) int {
	return cmp.Or(cmp.Compare(a.Option, b.Option), slices.CompareFunc(a.Pods, b.Pods, func(x, y instance.PodCount) int {
		return cmp.Or(cmp.Compare(x.Class, y.Class), cmp.Compare(x.Level, y.Level), cmp.Compare(y.Count, x.Count))
	}))
}

// numbering hands out the pods of classes, which a state only counts, in their order.
// Any pod of a class will do for any place, since no rule can tell them apart.
type numbering struct {
	// next is, by class, the first pod that has no place yet.
	next []int
	// numbers is 0, 1, 2, ... for all lists of pods to share.
	numbers []int
}

func newNumbering(p *model.Problem) *numbering {
	longest := 0
	for i := range p.Classes {
		longest = max(longest, len(p.Classes[i].Pods))
	}
	n := &numbering{next: make([]int, len(p.Classes)), numbers: make([]int, longest)}
	for i := range n.numbers {
		n.numbers[i] = i
	}
	return n
}

// take is the next count pods of a class. The list is shared: do not change it.
// Precondition: so many have no place yet.
func (n *numbering) take(class, count int) []int {
	from := n.next[class]
	n.next[class] += count
	return n.numbers[from : from+count : from+count]
}

// pods lists a place's pods by class, ascending, each class once: a place may hold pods of
// one class in several steps or at several levels.
func (n *numbering) pods(pl *placement.Place) []model.ClassPods {
	byClass := slices.Clone(pl.Pods)
	slices.SortStableFunc(byClass, func(a, b instance.PodCount) int { return a.Class - b.Class })
	out := make([]model.ClassPods, 0, len(byClass))
	for i := 0; i < len(byClass); {
		class, count := byClass[i].Class, 0
		for ; i < len(byClass) && byClass[i].Class == class; i++ {
			count += byClass[i].Count
		}
		out = append(out, model.ClassPods{Class: class, Pods: n.take(class, count)})
	}
	return out
}

// relaxed adds up the preferences that were given up, by class. A pod at level l has given
// up those of levels 1 to l.
func relaxed(s *placement.State) []model.Relaxation {
	classes := s.Instance.Classes
	given := make([][]int, len(classes))
	for i := range classes {
		if n := len(classes[i].Levels); n > 1 {
			given[i] = make([]int, n)
		}
	}
	s.EachPodCount(func(_ *placement.Place, pc instance.PodCount) {
		for l := 1; l <= pc.Level; l++ {
			given[pc.Class][l] += pc.Count
		}
	})
	var out []model.Relaxation
	for i := range given {
		for l, n := range given[i] {
			if n > 0 {
				out = append(out, model.Relaxation{Class: i, Pods: n, Preference: classes[i].Levels[l].GivenUp})
			}
		}
	}
	return out
}
