package state

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// compared is among how many bins with room the tightest one is chosen.
const compared = 6

// Placer finds places for unplaced pods on the bins of a state. It keeps nothing
// itself.
type Placer struct{ st *State }

// NewPlacer is the placer of a state.
func NewPlacer(s *State) Placer { return Placer{s} }

// PlaceAll finds places for the listed unplaced pods, class by class in the order of
// their ranks. It reports whether all of them have one; those that have none stay
// unplaced.
func (p Placer) PlaceAll() bool {
	p.st.Unplaced.Sort(p.st.Problem.Rank)
	return p.PlaceInOrder()
}

// PlaceInOrder is PlaceAll for classes in the order in which they are listed.
func (p Placer) PlaceInOrder() bool {
	for _, class := range p.st.Unplaced.classes {
		if p.st.Unplaced.count[class] > 0 {
			p.placeClass(class)
		}
	}
	return p.st.Unplaced.None()
}

// placeClass places as many pods of a class as have a place, at the first level of
// preferences at which that is so for each. A bin is filled before the next is looked
// for.
func (p Placer) placeClass(class int32) {
	s, c := p.st, &p.st.Problem.Classes[class]
	for level := range c.Levels {
		for s.Unplaced.count[class] > 0 && s.Unplaced.Allows(class, level) {
			i := p.bestBin(class, level)
			if i < 0 {
				break
			}
			n := s.Bins.CountFitting(c, i, s.Unplaced.count[class])
			if !c.Plain {
				n = int32(min(int(n), s.TopologyRoom(c, level, i)))
			}
			s.Put(i, Relocated{class, n, int8(level)})
		}
	}
}

// bestBin returns the bin for the next pods of a class: the tightest of the first few
// which take one, or -1.
func (p Placer) bestBin(class int32, level int) int32 {
	best, found := int32(-1), 0
	least := math.Inf(1)
	x, bins, c := p.st.Index, p.st.Bins, &p.st.Problem.Classes[class]
	for turn := range x.blocks() {
		k := x.turn(turn)
		if x.isFull(c.FirstLevel+int32(level), k) || !feasible.Fits(c.Size, x.peak(k)) {
			continue
		}
		room := false
		for _, i := range x.block(k) {
			if i < 0 || bins.At(i).Removed || !feasible.Fits(c.Size, bins.Free(i)) || !bins.Permits(c, level, i) {
				continue
			}
			room = true
			if !c.Plain && !p.suits(c, level, i) || p.st.tooLight(class, i) {
				continue
			}
			if slack := feasible.Slack(c.Size, bins.Free(i)); slack < least {
				best, least = i, slack
			}
			if found++; found >= compared {
				return best
			}
		}
		if !room {
			x.foundFull(c.FirstLevel+int32(level), k)
		}
	}
	return best
}

// suits is whether a bin that permits a class takes one of its pods now, by what
// depends on other pods: ports, disks and topology.
func (p Placer) suits(c *compiled.Class, level int, i int32) bool {
	return p.st.Bins.CountFitting(c, i, 1) > 0 && p.st.TopologyRoom(c, level, i) > 0
}

// PutAll puts unplaced pods where assignments say, as far as rules allow, turn by
// turn: rules of topology may let a pod in only after others have come elsewhere. It
// changes the counts of the assignments.
func (p Placer) PutAll(all []Assignment) {
	for again := true; again; {
		again = false
		for i := range all {
			if a := &all[i]; a.Count > 0 && p.st.Unplaced.count[a.Class] > 0 {
				n := p.put(a.Bin, a.Relocated)
				a.Count -= n
				again = again || n > 0 && a.Count > 0
			}
		}
	}
}

// refusals is how many bins with room may refuse pods of a class, by topology, before no more are
// asked.
const refusals = 64

// PlaceOn finds places for the listed unplaced pods on bins, which need not be offered: on the
// first of them with room. It reports whether all of the pods have places, and ends at the first
// class that has not.
func (p Placer) PlaceOn(bins []int32) bool {
	for _, class := range p.st.Unplaced.classes {
		for level := range p.st.Problem.Classes[class].Levels {
			p.placeOn(bins, class, level)
		}
		if p.st.Unplaced.count[class] > 0 {
			return false
		}
	}
	return true
}

// placeOn is PlaceOn for a class at a level.
func (p Placer) placeOn(bins []int32, class int32, level int) {
	s, c, refused := p.st, &p.st.Problem.Classes[class], 0
	for _, i := range bins {
		left := s.Unplaced.count[class]
		if left <= 0 || refused >= refusals {
			return
		}
		if s.Bins.CountFitting(c, i, 1) > 0 && s.Bins.Permits(c, level, i) && p.put(i, Relocated{class, left, int8(level)}) == 0 {
			refused++
		}
	}
}

// put puts unplaced pods on a bin as far as it takes them now, and returns how many.
func (p Placer) put(i int32, r Relocated) int32 {
	s, c := p.st, &p.st.Problem.Classes[r.Class]
	level := int(r.Level)
	n := min(r.Count, s.Unplaced.count[r.Class])
	n = min(n, s.Bins.CountFitting(c, i, r.Count))
	done := int32(0)
	if !s.Unplaced.Allows(r.Class, level) || s.tooLight(r.Class, i) {
		return 0
	}
	for n > 0 && s.Bins.Permits(c, level, i) && (c.Plain || p.suits(c, level, i)) {
		now := n
		if !c.Plain {
			now = int32(min(int(n), s.TopologyRoom(c, level, i)))
		}
		s.Put(i, Relocated{r.Class, now, r.Level})
		n -= now
		done += now
	}
	return done
}
