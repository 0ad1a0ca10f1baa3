package binpack

import (
	"slices"
)

// Solve packs the items of p at low cost. It always returns a feasible packing;
// see [Problem] for when it stops.
func Solve(p *Problem) *Solution {
	c, unplaced := reduce(p)
	s := &Solution{Unplaced: unplaced}
	m := newMeter(p)
	g := newGreedy(c, p.Seed)
	best := c.newPacking()
	bd := newBounder(c, c.newPacking().rem)
	proven := !p.Unproven || !m.over()
	g.bound(bd, proven)
	g.buildByTwo(best, firstRule)
	if best.left() > 0 {
		best = g.ration(best)
		if bd = newBounder(c, best.placed(c)); proven {
			g.bound(bd, true)
		}
	}
	s.FirstCost = best.cost
	g.account(m)
	if !m.over() {
		best, s.Rounds = c.improve(best, g, bd, m, p.Seed)
	}
	if s.Steps = m.steps; proven {
		s.LowerBound = min(bd.floor(), best.cost)
	}
	c.write(p, best, s)
	return s
}

// improve spends the meter's time on making a packing cheaper and its bound sharper,
// and returns the best one and how many improvements were tried.
func (c *core) improve(p *packing, g *greedy, bd *bounder, m *meter, seed uint64) (*packing, int) {
	rules := otherRules[:]
	f := c.finer()
	if f != c {
		rules = append([]rule{firstRule}, rules...)
	}
	first, side := c.newPacking(), m.beside()
	first.copyFrom(p)
	var prices pricing
	other := first
	both(func() {
		f.exchangeItems(p, m, seed)
	}, func() {
		if f != c {
			g = newGreedy(f, seed)
		}
		b := bd.on(f)
		g.sharpen(b, side)
		generateColumns(b, g.value, first, side)
		prices = g.pricing.clone()
		other = g.alternatives(first, rules, b, side)
		bd.best = b.best
	})
	m.join(side)
	if other != first && other.betterThan(c, p) {
		p = other
		f.exchangeItems(p, m, seed)
	}
	if p.left() > 0 {
		g.topUp(p)
	}
	se := newSearch(f, prices, p, m, seed)
	switch {
	case p.left() > 0:
		se.late = g
		se.run(bd.floor())
	case f.unlimited() && len(p.patterns) >= 2*patternsPerHand:
		se.runByTwo(bd.floor(), seed+1)
	default:
		se.run(bd.floor())
	}
	return se.result(), se.rounds
}

// Bound is a cost below which no packing of all items of p exists that some bin
// can hold. It packs nothing, which makes it cheaper than Solve, and is no less
// sharp.
func Bound(p *Problem) int64 {
	c, _ := reduce(p)
	m := newMeter(p)
	g := newGreedy(c, p.Seed)
	bd := newBounder(c, c.newPacking().rem)
	g.bound(bd, true)
	if g.account(m); !m.over() {
		if f := c.finer(); f != c {
			g, bd = newGreedy(f, p.Seed), bd.on(f)
		}
		g.sharpen(bd, m)
		generateColumns(bd, g.value, nil, m)
	}
	return bd.floor()
}

// write turns a packing back into the caller's classes and bins.
func (c *core) write(p *Problem, best *packing, s *Solution) {
	s.Cost = best.cost
	// next is, by merged class, the caller's class that is being served and how
	// many of its items are still to be placed.
	type cursor struct{ at, left int }
	next := make([]cursor, len(c.classes))
	for i := range c.classes {
		next[i] = cursor{0, p.Classes[c.classes[i].orig[0]].Count}
	}
	deal := func(i int32, n int, out []ClassCount) []ClassCount {
		cl, cur := &c.classes[i], &next[i]
		for n > 0 {
			k := min(n, cur.left)
			out = append(out, ClassCount{cl.orig[cur.at], k})
			cur.left -= k
			n -= k
			if cur.left == 0 && cur.at+1 < len(cl.orig) {
				cur.at++
				cur.left = p.Classes[cl.orig[cur.at]].Count
			}
		}
		return out
	}
	used := make([]int, len(c.kinds)) // fixed bins of the kind already dealt
	for _, pt := range best.patterns {
		k := &c.kinds[pt.kind]
		for left := pt.times; left > 0; {
			times := left
			for _, it := range pt.items {
				if n := int(it.n); next[it.class].left < n*times {
					times = max(1, next[it.class].left/n)
				}
			}
			if k.fixed {
				times = 1
			}
			b := Packed{Type: k.orig[0], Times: times, Counts: make([]ClassCount, 0, len(pt.items))}
			if k.fixed {
				b.Type = k.orig[used[pt.kind]]
				used[pt.kind]++
			}
			for _, it := range pt.items {
				before := len(b.Counts)
				b.Counts = deal(it.class, int(it.n)*times, b.Counts)
				for j := before; times > 1 && j < len(b.Counts); j++ {
					b.Counts[j].Count /= times
				}
			}
			slices.SortFunc(b.Counts, func(a, b ClassCount) int { return a.Class - b.Class })
			s.Bins = append(s.Bins, b)
			left -= times
		}
	}
	for i := range c.classes {
		cl := &c.classes[i]
		left := best.rem[i]
		for j := len(cl.orig) - 1; j >= 0 && left > 0; j-- {
			n := min(left, p.Classes[cl.orig[j]].Count)
			s.Unplaced[cl.orig[j]] += n
			left -= n
		}
	}
	slices.SortStableFunc(s.Bins, func(a, b Packed) int {
		fa, fb := p.Bins[a.Type].Fixed, p.Bins[b.Type].Fixed
		if fa != fb {
			if fa {
				return -1
			}
			return 1
		}
		return a.Type - b.Type
	})
}
