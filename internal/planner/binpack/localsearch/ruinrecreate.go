package localsearch

import (
	"math"
	"math/bits"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Search improves a packing by ruin and recreate (Shaw 1998; Schrimpf et al.
// 2000): it takes a few bins apart and packs their items again, which it keeps
// when that is cheaper. The prices say how much a handful of bins can possibly
// save, so hopeless trials end early.
type Search struct {
	c     *reduced.Problem
	p     *reduced.Packing // the packing that is changed
	re    *recreator
	value []float64 // by class, the worth of an item
	cost  []float64 // by type, cost including the price of scarce limits
	rng   reduced.RNG
	meter *meter.Meter
	// waste is, by pattern of p, the cost beyond the value of the contents.
	waste []float64
	// chosen are the patterns of the bins taken apart in this trial, possibly
	// repeated, and types their types.
	chosen []int
	types  []int32
	slab   []reduced.Content // where the contents of accepted bins are stored
	record record
	Rounds int                // trials so far
	Late   *construct.Builder // seats items that were left out; nil when none is
}

// record is the best packing found.
type record struct {
	cost int64
	// kept is that packing, when the search has left it for a dearer one.
	kept *reduced.Packing
	// since is how many trials have been made since it was found.
	since int
	// missing says that no packing is known yet that costs as little as cost.
	missing bool
}

// NewSearch starts a search from p, which it changes, by prices of the types on the list.
func NewSearch(m *reduced.Shortlist, pr bound.Prices, p *reduced.Packing, mt *meter.Meter, seed uint64) *Search {
	s := &Search{c: m.Problem, p: p, re: newRecreator(m, pr), value: pr.Value, cost: pr.Cost, rng: reduced.RNG(seed), meter: mt}
	s.record = record{kept: m.Problem.NewPacking(), cost: p.Cost}
	s.record.kept.CopyFrom(p)
	s.weigh()
	return s
}

// weigh works out the waste of every pattern.
func (s *Search) weigh() {
	s.waste = s.waste[:0]
	for _, pt := range s.p.Patterns {
		s.waste = append(s.waste, s.wasteOf(pt.Type, pt.Items))
	}
}

func (s *Search) wasteOf(t int32, items []reduced.Content) float64 {
	v := s.cost[t]
	for _, it := range items {
		v -= s.value[it.Class] * float64(it.Count)
	}
	return v
}

// trial takes some bins apart and tries to do better.
func (s *Search) trial() {
	s.Rounds++
	before := s.re.fill.Work()
	s.choose()
	old, target := int64(0), 0.0
	for _, t := range s.types {
		old += s.c.Types[t].Cost
		target += s.cost[t]
	}
	stray := s.allowance(target)
	s.re.begin()
	s.count(-1) // what the trial opens counts in close
	ok := s.ruin(target+stray) && s.re.recreate(target+stray, s.types, s.p.Limits, &s.rng) && float64(s.re.cost()) <= float64(old)+stray
	s.meter.Spend(s.re.fill.Work() - before + 200)
	s.re.pool.clear()
	for _, o := range s.re.made {
		s.p.Limits.Open(o.binType, -1)
	}
	s.count(1)
	if ok {
		if s.p.Cost == s.record.cost {
			// The trial may lead away from the best packing.
			s.record.kept.CopyFrom(s.p)
			s.record.missing = false
		}
		s.commit(old)
		if more := s.seated(); more || s.p.Cost < s.record.cost {
			s.record.cost, s.record.since, s.record.missing = s.p.Cost, 0, false
		}
	}
}

// seated gives the items that were left out the room that a trial has made. A
// packing with more items in it is the best one, whatever it costs.
func (s *Search) seated() bool {
	if s.Late == nil {
		return false
	}
	more := s.Late.Seat(s.p)
	s.Late.Account(s.meter)
	if !more {
		return false
	}
	s.weigh()
	if s.p.Left() == 0 {
		s.Late = nil
	}
	return true
}

// Run tries until the meter stops it, nothing can be saved while nothing is left
// out, or nothing has been found for long.
func (s *Search) Run(bound int64) {
	patience := s.patience()
	for len(s.p.Patterns) > 0 && (s.record.cost > bound || s.Late != nil) && s.record.since < patience && !s.meter.Over() {
		s.record.since++
		s.trial()
	}
}

// patience is how many trials in a row may be in vain.
func (s *Search) patience() int {
	return min(mostPatience, leastPatience+patiencePerBin*len(s.p.Patterns))
}

// Result is the best packing found.
func (s *Search) Result() *reduced.Packing {
	if s.record.cost < s.p.Cost && !s.record.missing {
		return s.record.kept
	}
	return s.p
}

// A trial may make the packing dearer by little, so that the search does not get
// stuck, as long as it stays near the record (record-to-record travel, Dueck
// 1993). How far it may go shrinks to nothing over a cycle of trials and starts
// again.
const (
	cycle = 5000
	warm  = 4000 // the first cycle starts this late: at first, downhill is best

	// The search ends after so many trials without a new record, few where there
	// are few types of filled bins to choose from.
	leastPatience  = 500
	patiencePerBin = 200
	mostPatience   = 20000

	strayTotal = 0.001 // above the record, of its cost
	strayTrial = 0.003 // in one trial, of the cost of the bins taken apart
)

// allowance is by how much a trial on bins of the given cost may be dearer.
func (s *Search) allowance(old float64) float64 {
	frac := 1 - float64((s.Rounds+warm)%cycle)/cycle
	return min(max(0, float64(s.record.cost)*(1+strayTotal*frac)-float64(s.p.Cost)), strayTrial*frac*old)
}

// choose picks the bins to take apart: one of the most wasteful and others that
// are nearly so, by tournaments, which are longer the more bins there are.
func (s *Search) choose() {
	n := len(s.p.Patterns)
	s.chosen, s.types = s.chosen[:0], s.types[:0]
	size := 2 + s.rng.Below(3)
	heats := bits.Len(uint(n)) - 1
	for len(s.chosen) < size {
		k := s.rng.Below(n)
		for range heats {
			if o := s.rng.Below(n); s.waste[o] > s.waste[k] {
				k = o
			}
			if len(s.chosen) > 0 && s.rng.Below(6) == 0 {
				break
			}
		}
		used := 0
		for _, o := range s.chosen {
			if o == k {
				used++
			}
		}
		if used < s.p.Patterns[k].Times {
			s.chosen, s.types = append(s.chosen, k), append(s.types, s.p.Patterns[k].Type)
		} else {
			size--
		}
	}
}

// count counts the chosen bins n times more towards the limits.
func (s *Search) count(n int) {
	for _, t := range s.types {
		s.p.Limits.Open(t, n)
	}
}

// ruin pools the items of the chosen bins, unless their prices say that nothing
// can be saved.
func (s *Search) ruin(target float64) bool {
	worth := 0.0
	for _, k := range s.chosen {
		items := s.p.Patterns[k].Items
		s.re.pool.add(items)
		for _, it := range items {
			worth += s.value[it.Class] * float64(it.Count)
		}
	}
	if worth >= target*(1-1e-9) {
		return false
	}
	s.re.pool.sort()
	return true
}

// store copies contents for good, many to an allocation.
func (s *Search) store(items []reduced.Content) []reduced.Content {
	if cap(s.slab)-len(s.slab) < len(items) {
		s.slab = make([]reduced.Content, 0, 4096+len(items))
	}
	from := len(s.slab)
	s.slab = append(s.slab, items...)
	return s.slab[from:len(s.slab):len(s.slab)]
}

// commit replaces the chosen bins by those in out, as often as there are equal
// bins to replace.
func (s *Search) commit(old int64) {
	c, p := s.c, s.p
	times := math.MaxInt
	for _, k := range s.chosen {
		used := 0
		for _, o := range s.chosen {
			if o == k {
				used++
			}
		}
		times = min(times, p.Patterns[k].Times/used)
	}
	fresh := int64(0)
	for _, o := range s.re.made {
		fresh += c.Types[o.binType].Cost
		if c.Types[o.binType].Max >= 0 || c.Types[o.binType].Use != nil {
			times = 1
		}
	}
	for _, k := range s.chosen {
		p.Limits.Open(p.Patterns[k].Type, -times)
		p.Patterns[k].Times -= times
	}
	for _, o := range s.re.made {
		items := s.store(s.re.items(o))
		p.Limits.Open(o.binType, times)
		p.Patterns = append(p.Patterns, reduced.Pattern{Type: o.binType, Times: times, Items: items})
		s.waste = append(s.waste, s.wasteOf(o.binType, items))
	}
	p.Cost += int64(times) * (fresh - old)
	for k := 0; k < len(p.Patterns); {
		if p.Patterns[k].Times > 0 {
			k++
			continue
		}
		last := len(p.Patterns) - 1
		p.Patterns[k], s.waste[k] = p.Patterns[last], s.waste[last]
		p.Patterns, s.waste = p.Patterns[:last], s.waste[:last]
	}
}
