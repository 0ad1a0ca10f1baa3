package binpack

import (
	"math"
	"slices"
)

// pattern is a filled bin, bought a number of times.
type pattern struct {
	kind  int32
	times int
	items []content
}

// mostPerBin keeps counts within a bin in 32 bits.
const mostPerBin = 1 << 30

// content is a number of items of one class in a bin.
type content struct{ class, n int32 }

// packing is a packing in the making: what is bought, what is left to place,
// and what may still be bought.
type packing struct {
	c        *core
	patterns []pattern
	rem      []int // by class, items not placed
	lim      *limits
	cost     int64
}

func (c *core) newPacking() *packing {
	p := &packing{c: c, rem: make([]int, len(c.classes)), lim: c.newLimits()}
	for i := range c.classes {
		p.rem[i] = c.classes[i].count
	}
	return p
}

// copyFrom makes p a copy of o that shares only the contents of patterns, which
// nobody changes once they are in a packing.
func (p *packing) copyFrom(o *packing) {
	p.patterns = append(p.patterns[:0], o.patterns...)
	p.rem = append(p.rem[:0], o.rem...)
	p.lim.copyFrom(o.lim)
	p.cost = o.cost
}

// buy adds a bin of kind t with the items, which are ordered by class, times times.
func (p *packing) buy(t int32, items []content, times int) {
	for _, it := range items {
		p.rem[it.class] -= int(it.n) * times
	}
	p.lim.open(t, times)
	p.cost += p.c.kinds[t].cost * int64(times)
	p.patterns = append(p.patterns, pattern{t, times, items})
}

// repeats is how often a bin of kind t with the items can be bought with what is left.
func (p *packing) repeats(t int32, items []content) int {
	n := p.lim.room(t)
	for _, it := range items {
		n = min(n, p.rem[it.class]/int(it.n))
	}
	return n
}

// placed is, by class, how many items are packed.
func (p *packing) placed() []int {
	n := make([]int, len(p.rem))
	for i := range n {
		n[i] = p.c.classes[i].count - p.rem[i]
	}
	return n
}

// left is how many items are not placed.
func (p *packing) left() int {
	n := 0
	for _, r := range p.rem {
		n += r
	}
	return n
}

// betterThan compares by the items left out, the highest priority first, and
// then by cost.
func (p *packing) betterThan(o *packing) bool {
	if byPriority := p.c.compareLeft(p.rem, o.rem); byPriority != 0 {
		return byPriority < 0
	}
	return p.cost < o.cost
}

func (c *core) compareLeft(a, b []int) int {
	top := int64(math.MaxInt64)
	for {
		// The next priority below top at which the two differ, if any.
		next, diff := int64(math.MinInt64), 0
		for i := range a {
			if pr := int64(c.classes[i].prio); a[i] != b[i] && pr < top {
				switch {
				case pr > next:
					next, diff = pr, a[i]-b[i]
				case pr == next:
					diff += a[i] - b[i]
				}
			}
		}
		if next == math.MinInt64 || diff != 0 {
			return diff
		}
		top = next
	}
}

// cheapest returns the cheapest kind that may hold the contents of a bin of
// kind t in its place, or t.
func (c *core) cheapest(t int32, items []content, lim *limits, load []int64) int32 {
	clear(load)
	for _, it := range items {
		for d, v := range c.classes[it.class].size {
			load[d] += v * int64(it.n)
		}
	}
	for _, u := range c.buyable {
		k := &c.kinds[u]
		if k.cost >= c.kinds[t].cost {
			break
		}
		if fits(load, k.cap) && c.holds(u, items) && lim.room(u) > 0 {
			return u
		}
	}
	return t
}

// holds tells whether kind t is compatible with all the items.
func (c *core) holds(t int32, items []content) bool {
	sigs := c.cols[c.kinds[t].col]
	for _, it := range items {
		if !sigs.Has(c.classes[it.class].sig) {
			return false
		}
	}
	return true
}

// remove takes bins of pattern k out of p.
func (p *packing) remove(k, times int) {
	pt := &p.patterns[k]
	for _, it := range pt.items {
		p.rem[it.class] += int(it.n) * times
	}
	p.lim.open(pt.kind, -times)
	p.cost -= p.c.kinds[pt.kind].cost * int64(times)
	if pt.times -= times; pt.times == 0 {
		p.patterns = slices.Delete(p.patterns, k, k+1)
	}
}

// unite makes p what two hands have together.
func (p *packing) unite(x, y *packing) {
	p.patterns = append(append(p.patterns[:0], x.patterns...), y.patterns...)
	p.cost = x.cost + y.cost
}
