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

// content is a number of items of one class in a bin.
type content struct{ class, n int32 }

// packing is a packing in the making: what is bought, what is left to place,
// and what may still be bought.
type packing struct {
	patterns []pattern
	rem      []int // by class, items not placed
	lim      *limits
	cost     int64
}

func (c *core) newPacking() *packing {
	p := &packing{rem: make([]int, len(c.classes)), lim: c.newLimits()}
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

// buy adds the bin that f holds, times times.
func (p *packing) buy(f *filler, t int32, times int) {
	items := make([]content, len(f.touched))
	for k, i := range f.touched {
		items[k] = content{i, f.got[i]}
		p.rem[i] -= int(f.got[i]) * times
	}
	slices.SortFunc(items, func(a, b content) int { return int(a.class) - int(b.class) })
	p.lim.open(f.c, t, times)
	p.cost += f.c.kinds[t].cost * int64(times)
	p.patterns = append(p.patterns, pattern{t, times, items})
}

// repeats is how often the bin that f holds can be bought with what is left.
func (p *packing) repeats(f *filler, t int32) int {
	n := p.lim.room(f.c, t)
	for _, i := range f.touched {
		n = min(n, p.rem[i]/int(f.got[i]))
	}
	return n
}

// placed is, by class, how many items are packed.
func (p *packing) placed(c *core) []int {
	n := make([]int, len(p.rem))
	for i := range n {
		n[i] = c.classes[i].count - p.rem[i]
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
func (p *packing) betterThan(c *core, o *packing) bool {
	if byPriority := c.compareLeft(p.rem, o.rem); byPriority != 0 {
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
		if fits(load, k.cap) && c.holds(u, items) && lim.room(c, u) > 0 {
			return u
		}
	}
	return t
}

// holds tells whether kind t is compatible with all the items.
func (c *core) holds(t int32, items []content) bool {
	sigs := c.cols[c.kinds[t].col].sigs
	for _, it := range items {
		if !sigs.Has(c.classes[it.class].sig) {
			return false
		}
	}
	return true
}
