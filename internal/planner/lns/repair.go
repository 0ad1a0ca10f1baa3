package lns

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
)

// mostGuided bounds for how many classes with stranded pods a plan is guided.
const mostGuided = 6

// guide plans from the beginning with stranded classes served first, together with the
// pods that their affinity selects.
func (s *search) guide(stranded []int) {
	strategies := []construct.Strategy{{Sequential: true, BySize: true, Join: true}, {Sequential: true, ByCount: true}}
	tried := map[int]bool{}
	for len(stranded) > 0 && len(tried) < mostGuided && !s.late() {
		first := stranded[0]
		stranded = stranded[1:]
		if tried[first] {
			continue
		}
		tried[first] = true
		better := false
		for _, strategy := range strategies {
			if s.late() {
				break
			}
			f := s.fork(strategy)
			order := append([]int{first}, slices.DeleteFunc(slices.Clone(s.blank.Sequence()), func(i int) bool { return i == first })...)
			f.Admit(order, func(i int) bool { return i == first || s.best.State.Left[i] > 0 })
			better = s.accept(f) || better
		}
		if better {
			stranded = s.best.Stranded()
		}
	}
}

// around plans again around the pods of some classes and of those that their affinity
// selects, which stay where they are in the best plan. The pods that were placed before
// these to make that possible may have a cheaper place.
func (s *search) around(classes []int) {
	in := s.blank.State.Instance
	stays := map[int]bool{}
	for _, class := range classes {
		stays[class] = true
		for _, i := range s.blank.Sequence() {
			stays[i] = stays[i] || in.Attracts(i, class)
		}
	}
	places := keptOf(s.best)
	for i := range places {
		places[i].pods = slices.DeleteFunc(places[i].pods, func(pc instance.PodCount) bool { return !stays[pc.Class] })
	}
	places = slices.DeleteFunc(places, func(k kept) bool { return len(k.pods) == 0 })
	for _, strategy := range []construct.Strategy{{}, {ByCount: true}, {BySize: true}, {BySize: true, ByUnitCost: true}} {
		if s.late() {
			return
		}
		f := s.fork(strategy)
		enter(f, copied(places))
		f.Reorder()
		if nodechoice.Construct(f, &s.quick, nil).Entangled {
			continue
		}
		s.offers.RightSize(f.State)
		s.accept(f)
	}
}

// copied is a list of kept places with pods of its own, since enter takes them off.
func copied(places []kept) []kept {
	out := slices.Clone(places)
	for i := range out {
		out[i].pods = slices.Clone(out[i].pods)
	}
	return out
}

// strategy draws how to place pods.
func (s *search) strategy() construct.Strategy {
	coin := s.rng.IntN(2) == 0
	switch s.rng.IntN(3) {
	case 0:
		return construct.Strategy{Sequential: true, BySize: true, Join: true, OneByOne: coin}
	case 1:
		return construct.Strategy{Sequential: true, ByCount: coin, OneByOne: s.rng.IntN(3) == 0}
	default:
		return construct.Strategy{ByCount: coin}
	}
}

// order draws in which order classes come: as usual, the large ones first, or any. In two
// of three cases those that wait in the current plan come first.
func (s *search) order(f *construct.Constructor) []int {
	order, classes := slices.Clone(f.Sequence()), f.State.Instance.Classes
	switch s.rng.IntN(3) {
	case 0:
		s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	case 1:
		slices.SortStableFunc(order, func(x, y int) int { return construct.BySize(&classes[x], &classes[y]) })
	}
	if s.rng.IntN(3) > 0 {
		waits := func(i int) int { return min(1, s.now.State.Left[i]) }
		slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(waits(y), waits(x)) })
	}
	return order
}
