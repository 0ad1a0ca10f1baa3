package binpack

import (
	"math"
	"math/bits"
	"slices"
)

// search improves a packing by ruin and recreate (Shaw 1998; Schrimpf et al.
// 2000): it takes a few bins apart and packs their items again, which it keeps
// when that is cheaper. The prices say how much a handful of bins can possibly
// save, so hopeless trials end early.
type search struct {
	c    *core
	p    *packing
	fill *filler
	pricing
	rng random
	m   *meter

	waste  []float64 // by pattern, cost beyond the value of the contents
	chosen []int     // patterns of the bins taken apart, possibly repeated
	rem    []int     // by class, items of the bins taken apart not packed yet
	pool   []int32   // classes with items in rem at the start of the trial, by falling value
	byRank []int32   // the classes by falling value
	rank   []int32   // the place of every class in byRank
	load   []int64
	out    []filled
	arena  []content
	slab   []content // where the contents of accepted bins are stored
	some   []int32
	views  []*view // by kind and rule
	try    []content
	rounds int
	since  int      // trials since the last record
	kept   *packing // the best packing, when p is not it
	record int64
	// missing says that no packing is known yet that costs as little as the record.
	missing bool
	late    *greedy // seats items that were left out, if any were
}

// filled is a bin made in a trial; its contents are in search.arena.
type filled struct {
	kind     int32
	from, to int
}

func newSearch(c *core, pr pricing, p *packing, m *meter, seed uint64) *search {
	s := &search{c: c, p: p, fill: newFiller(c), pricing: pr,
		rng: random(seed), m: m, rem: make([]int, len(c.classes)), load: make([]int64, c.d), views: make([]*view, bigs*len(c.kinds))}
	for i := range c.classes {
		s.byRank = append(s.byRank, int32(i))
	}
	sortBy(s.byRank, func(i int32) float64 { return -pr.value[i] })
	s.rank = make([]int32, len(c.classes))
	for k, i := range s.byRank {
		s.rank[i] = int32(k)
	}
	s.kept, s.record = c.newPacking(), p.cost
	s.kept.copyFrom(p)
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
	before := s.fill.steps
	s.choose()
	old, target := int64(0), 0.0
	for _, k := range s.chosen {
		old += s.c.kinds[s.p.patterns[k].kind].cost
		target += s.cost[s.p.patterns[k].kind]
	}
	stray := s.allowance(target)
	s.pool, s.out, s.arena = s.pool[:0], s.out[:0], s.arena[:0]
	s.count(-1) // what the trial opens counts in close
	ok := s.ruin(target+stray) && s.recreate(target+stray) && float64(s.spent()) <= float64(old)+stray
	s.m.spend(s.fill.steps - before + 200)
	for _, i := range s.pool {
		s.rem[i] = 0
	}
	for _, o := range s.out {
		s.p.lim.open(s.c, o.kind, -1)
	}
	s.count(1)
	if ok {
		if s.p.cost == s.record {
			// The trial may lead away from the best packing.
			s.kept.copyFrom(s.p)
			s.missing = false
		}
		s.commit(old)
		if more := s.seated(); more || s.p.cost < s.record {
			s.record, s.since, s.missing = s.p.cost, 0, false
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
	for len(s.p.patterns) > 0 && (s.record > bound || s.late != nil) && s.since < patience && !s.m.over() {
		s.since++
		s.trial()
	}
}

// patience is how many trials in a row may be in vain.
func (s *search) patience() int {
	return min(mostPatience, leastPatience+patiencePerBin*len(s.p.patterns))
}

// spent is the cost of the bins in out.
func (s *search) spent() int64 {
	cost := int64(0)
	for _, o := range s.out {
		cost += s.c.kinds[o.kind].cost
	}
	return cost
}

// result is the best packing found.
func (s *search) result() *packing {
	if s.record < s.p.cost && !s.missing {
		return s.kept
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
	return min(max(0, float64(s.record)*(1+strayTotal*frac)-float64(s.p.cost)), strayTrial*frac*old)
}

// choose picks the bins to take apart: one of the most wasteful and company that
// is nearly so, by tournaments, which are longer the more bins there are.
func (s *search) choose() {
	n := len(s.p.patterns)
	s.chosen = s.chosen[:0]
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
			s.chosen = append(s.chosen, k)
		} else {
			size--
		}
	}
}

// count counts the chosen bins n times more towards the limits.
func (s *search) count(n int) {
	for _, k := range s.chosen {
		s.p.lim.open(s.c, s.p.patterns[k].kind, n)
	}
}

// ruin pools the items of the chosen bins, unless their prices say that nothing
// can be saved.
func (s *search) ruin(target float64) bool {
	worth := 0.0
	for _, k := range s.chosen {
		for _, it := range s.p.patterns[k].items {
			if s.rem[it.class] == 0 {
				s.pool = append(s.pool, it.class)
			}
			s.rem[it.class] += int(it.n)
			worth += s.value[it.class] * float64(it.n)
		}
	}
	if worth >= target*(1-1e-9) {
		return false
	}
	for k, i := range s.pool {
		s.pool[k] = s.rank[i]
	}
	slices.Sort(s.pool)
	for k, i := range s.pool {
		s.pool[k] = s.byRank[i]
	}
	return true
}

// close moves what the filler holds from rem to out.
func (s *search) close(t int32) {
	from := len(s.arena)
	for _, i := range s.fill.touched {
		s.arena = append(s.arena, content{i, s.fill.got[i]})
		s.rem[i] -= int(s.fill.got[i])
	}
	s.out = append(s.out, filled{t, from, len(s.arena)})
	s.p.lim.open(s.c, t, 1)
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
	for _, o := range s.out {
		fresh += c.kinds[o.kind].cost
		if c.kinds[o.kind].max >= 0 || c.kinds[o.kind].use != nil {
			times = 1
		}
	}
	for _, k := range s.chosen {
		p.lim.open(c, p.patterns[k].kind, -times)
		p.patterns[k].times -= times
	}
	for _, o := range s.out {
		items := s.store(s.arena[o.from:o.to])
		p.lim.open(c, o.kind, times)
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
