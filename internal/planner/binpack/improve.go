package binpack

import (
	"math"
	"math/bits"
)

// search improves a packing by ruin and recreate (Shaw 1998; Schrimpf et al.
// 2000): it takes a few bins apart and packs their items again, which it keeps
// when that is cheaper. The prices say how much a handful of bins can possibly
// save, so hopeless trials end early.
type search struct {
	c     *core
	p     *packing // the packing that is changed
	re    *recreator
	value []float64 // by class, the worth of an item
	cost  []float64 // by type, cost including the price of scarce limits
	rng   random
	m     *meter
	// waste is, by pattern of p, the cost beyond the value of the contents.
	waste []float64
	// chosen are the patterns of the bins taken apart in this trial, possibly
	// repeated, and types their types.
	chosen []int
	types  []int32
	slab   []content // where the contents of accepted bins are stored
	record record
	rounds int     // trials so far
	late   *greedy // seats items that were left out; nil when none is
}

// record is the best packing found.
type record struct {
	cost int64
	// kept is that packing, when the search has left it for a dearer one.
	kept *packing
	// since is how many trials have been made since it was found.
	since int
	// missing says that no packing is known yet that costs as little as cost.
	missing bool
}

func newSearch(m *menu, pr pricing, p *packing, mt *meter, seed uint64) *search {
	s := &search{c: m.c, p: p, re: newRecreator(m, pr), value: pr.value, cost: pr.cost, rng: random(seed), m: mt}
	s.record = record{kept: m.c.newPacking(), cost: p.cost}
	s.record.kept.copyFrom(p)
	s.weigh()
	return s
}

// weigh works out the waste of every pattern.
func (s *search) weigh() {
	s.waste = s.waste[:0]
	for _, pt := range s.p.patterns {
		s.waste = append(s.waste, s.wasteOf(pt.kind, pt.items))
	}
}

func (s *search) wasteOf(t int32, items []content) float64 {
	v := s.cost[t]
	for _, it := range items {
		v -= s.value[it.class] * float64(it.n)
	}
	return v
}

// trial takes some bins apart and tries to do better.
func (s *search) trial() {
	s.rounds++
	before := s.re.fill.work()
	s.choose()
	old, target := int64(0), 0.0
	for _, t := range s.types {
		old += s.c.kinds[t].cost
		target += s.cost[t]
	}
	stray := s.allowance(target)
	s.re.begin()
	s.count(-1) // what the trial opens counts in close
	ok := s.ruin(target+stray) && s.re.recreate(target+stray, s.types, s.p.lim, &s.rng) && float64(s.re.cost()) <= float64(old)+stray
	s.m.spend(s.re.fill.work() - before + 200)
	s.re.pool.clear()
	for _, o := range s.re.made {
		s.p.lim.open(o.kind, -1)
	}
	s.count(1)
	if ok {
		if s.p.cost == s.record.cost {
			// The trial may lead away from the best packing.
			s.record.kept.copyFrom(s.p)
			s.record.missing = false
		}
		s.commit(old)
		if more := s.seated(); more || s.p.cost < s.record.cost {
			s.record.cost, s.record.since, s.record.missing = s.p.cost, 0, false
		}
	}
}

// seated gives the items that were left out the room that a trial has made. A
// packing with more items in it is the best one, whatever it costs.
func (s *search) seated() bool {
	if s.late == nil {
		return false
	}
	more := s.late.seat(s.p)
	s.late.account(s.m)
	if !more {
		return false
	}
	s.weigh()
	if s.p.left() == 0 {
		s.late = nil
	}
	return true
}

// run tries until the meter stops it, nothing can be saved while nothing is left
// out, or nothing has been found for long.
func (s *search) run(bound int64) {
	patience := s.patience()
	for len(s.p.patterns) > 0 && (s.record.cost > bound || s.late != nil) && s.record.since < patience && !s.m.over() {
		s.record.since++
		s.trial()
	}
}

// patience is how many trials in a row may be in vain.
func (s *search) patience() int {
	return min(mostPatience, leastPatience+patiencePerBin*len(s.p.patterns))
}

// result is the best packing found.
func (s *search) result() *packing {
	if s.record.cost < s.p.cost && !s.record.missing {
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
	// are few kinds of filled bins to choose from.
	leastPatience  = 500
	patiencePerBin = 200
	mostPatience   = 20000

	strayTotal = 0.001 // above the record, of its cost
	strayTrial = 0.003 // in one trial, of the cost of the bins taken apart
)

// allowance is by how much a trial on bins of the given cost may be dearer.
func (s *search) allowance(old float64) float64 {
	frac := 1 - float64((s.rounds+warm)%cycle)/cycle
	return min(max(0, float64(s.record.cost)*(1+strayTotal*frac)-float64(s.p.cost)), strayTrial*frac*old)
}

// choose picks the bins to take apart: one of the most wasteful and company that
// is nearly so, by tournaments, which are longer the more bins there are.
func (s *search) choose() {
	n := len(s.p.patterns)
	s.chosen, s.types = s.chosen[:0], s.types[:0]
	size := 2 + s.rng.below(3)
	heats := bits.Len(uint(n)) - 1
	for len(s.chosen) < size {
		k := s.rng.below(n)
		for range heats {
			if o := s.rng.below(n); s.waste[o] > s.waste[k] {
				k = o
			}
			if len(s.chosen) > 0 && s.rng.below(6) == 0 {
				break
			}
		}
		used := 0
		for _, o := range s.chosen {
			if o == k {
				used++
			}
		}
		if used < s.p.patterns[k].times {
			s.chosen, s.types = append(s.chosen, k), append(s.types, s.p.patterns[k].kind)
		} else {
			size--
		}
	}
}

// count counts the chosen bins n times more towards the limits.
func (s *search) count(n int) {
	for _, t := range s.types {
		s.p.lim.open(t, n)
	}
}

// ruin pools the items of the chosen bins, unless their prices say that nothing
// can be saved.
func (s *search) ruin(target float64) bool {
	worth := 0.0
	for _, k := range s.chosen {
		items := s.p.patterns[k].items
		s.re.pool.add(items)
		for _, it := range items {
			worth += s.value[it.class] * float64(it.n)
		}
	}
	if worth >= target*(1-1e-9) {
		return false
	}
	s.re.pool.sort()
	return true
}

// store copies contents for good, many to an allocation.
func (s *search) store(items []content) []content {
	if cap(s.slab)-len(s.slab) < len(items) {
		s.slab = make([]content, 0, 4096+len(items))
	}
	from := len(s.slab)
	s.slab = append(s.slab, items...)
	return s.slab[from:len(s.slab):len(s.slab)]
}

// commit replaces the chosen bins by those in out, as often as there are equal
// bins to replace.
func (s *search) commit(old int64) {
	c, p := s.c, s.p
	times := math.MaxInt
	for _, k := range s.chosen {
		used := 0
		for _, o := range s.chosen {
			if o == k {
				used++
			}
		}
		times = min(times, p.patterns[k].times/used)
	}
	fresh := int64(0)
	for _, o := range s.re.made {
		fresh += c.kinds[o.kind].cost
		if c.kinds[o.kind].max >= 0 || c.kinds[o.kind].use != nil {
			times = 1
		}
	}
	for _, k := range s.chosen {
		p.lim.open(p.patterns[k].kind, -times)
		p.patterns[k].times -= times
	}
	for _, o := range s.re.made {
		items := s.store(s.re.items(o))
		p.lim.open(o.kind, times)
		p.patterns = append(p.patterns, pattern{o.kind, times, items})
		s.waste = append(s.waste, s.wasteOf(o.kind, items))
	}
	p.cost += int64(times) * (fresh - old)
	for k := 0; k < len(p.patterns); {
		if p.patterns[k].times > 0 {
			k++
			continue
		}
		last := len(p.patterns) - 1
		p.patterns[k], s.waste[k] = p.patterns[last], s.waste[last]
		p.patterns, s.waste = p.patterns[:last], s.waste[:last]
	}
}
