package binpack

// Solve packs the items of p at low cost. It always returns a feasible packing;
// see [Problem] for when it stops.
func Solve(p *Problem) *Solution {
	c, unplaced := reduce(p)
	s := &Solution{Unplaced: unplaced}
	mt := newMeter(p)
	m := newMenu(c, fewPairs)
	g := newGreedy(m, p.Seed)
	best := c.newPacking()
	bd := newBounder(m, c.newPacking().rem)
	proven := !p.Unproven || !mt.over()
	g.prices.bound(bd, proven)
	g.buildByTwo(best, firstRule)
	if best.left() > 0 {
		best = g.ration(best)
		if bd = newBounder(m, best.placed()); proven {
			g.prices.bound(bd, true)
		}
	}
	s.FirstCost = best.cost
	g.account(mt)
	if !mt.over() {
		best, s.Rounds = improve(best, g, bd, mt, p.Seed)
	}
	if s.Steps = mt.steps; proven {
		s.LowerBound = min(bd.floor(), best.cost)
	}
	newWriter(p, best).write(s)
	return s
}

// improve spends the meter's time on making a packing cheaper and its bound sharper,
// and returns the best one and how many improvements were tried.
func improve(p *packing, g *greedy, bd *bounder, mt *meter, seed uint64) (*packing, int) {
	c, rules := p.c, otherRules[:]
	m := g.menu.finer()
	if m != g.menu {
		rules = append([]rule{firstRule}, rules...)
	}
	first, side := c.newPacking(), mt.beside()
	first.copyFrom(p)
	var prices pricing
	other := first
	both(func() {
		exchangeItems(p, mt, seed)
	}, func() {
		if m != g.menu {
			g = newGreedy(m, seed)
		}
		b := bd.on(m)
		g.prices.sharpen(b, side)
		generateColumns(b, g.prices.now.value, first, side)
		prices = g.prices.now.clone()
		other = g.alternatives(first, rules, b, side)
		bd.best = b.best
	})
	mt.join(side)
	if other != first && other.betterThan(p) {
		p = other
		exchangeItems(p, mt, seed)
	}
	if p.left() > 0 {
		g.topUp(p)
	}
	se := newSearch(m, prices, p, mt, seed)
	switch {
	case p.left() > 0:
		se.late = g
		se.run(bd.floor())
	case c.unlimited() && len(p.patterns) >= 2*patternsPerHand:
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
	mt := newMeter(p)
	m := newMenu(c, fewPairs)
	pr := newPricer(m)
	bd := newBounder(m, c.newPacking().rem)
	pr.bound(bd, true)
	if pr.account(mt); !mt.over() {
		if f := m.finer(); f != m {
			pr, bd = newPricer(f), bd.on(f)
		}
		pr.sharpen(bd, mt)
		generateColumns(bd, pr.now.value, nil, mt)
	}
	return bd.floor()
}
