package placement

import (
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// Unplaced is how many pods still need a place.
func (s *State) Unplaced() int {
	n := 0
	for _, k := range s.Left {
		n += k
	}
	return n
}

// Cost is the price of all new nodes.
func (s *State) Cost() model.Money {
	var sum model.Money
	for _, pl := range s.NewNodes {
		sum += s.Instance.Space.Options[pl.Option].Price
	}
	return sum
}

// Better reports whether s leaves fewer pods without a place than o, those of the
// highest priority first, or is cheaper at the same number.
func (s *State) Better(o *State) bool {
	if c := s.compareMissing(o); c != 0 {
		return c < 0
	}
	return s.Cost() < o.Cost()
}

// PlacesMore is Better without a look at the price.
func (s *State) PlacesMore(o *State) bool { return s.compareMissing(o) < 0 }

// compareMissing compares how many pods have no place at the highest priority at which
// that differs. It is negative when s leaves fewer of them out than o.
func (s *State) compareMissing(o *State) int {
	type tally struct{ mine, theirs int }
	missing := map[int32]tally{}
	for i := range s.Instance.Classes {
		priority := s.Instance.Classes[i].Spec.Priority
		t := missing[priority]
		t.mine += s.Left[i]
		t.theirs += o.Left[i]
		missing[priority] = t
	}
	var at int32
	differ := false
	for priority, t := range missing { // the highest that differs: order does not matter
		if t.mine != t.theirs && (!differ || priority > at) {
			at, differ = priority, true
		}
	}
	return missing[at].mine - missing[at].theirs
}

// PlacedCounts is how many pods of each class have a place.
func (s *State) PlacedCounts() []int {
	placed := s.Instance.PodCounts()
	for i := range placed {
		placed[i] -= s.Left[i]
	}
	return placed
}

// GivenUp counts the preferences that pods have given up.
func (s *State) GivenUp() int {
	n := 0
	s.EachPodCount(func(_ *Place, pc instance.PodCount) { n += pc.Level * pc.Count })
	return n
}

// Bought are the options of all new nodes. The caller owns the set.
func (s *State) Bought() bitset.Set {
	bought := bitset.New(len(s.Instance.Space.Options))
	for _, pl := range s.NewNodes {
		bought.Add(pl.Option)
	}
	return bought
}
