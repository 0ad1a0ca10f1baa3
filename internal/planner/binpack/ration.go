package binpack

import "slices"

// ration packs again when limits leave items out, the classes of highest
// priority first, and returns the better of the two packings.
func (g *greedy) ration(p *packing) *packing {
	c := g.c
	var levels []int32
	for i := range c.classes {
		levels = append(levels, c.classes[i].prio)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	slices.Reverse(levels)
	q := c.newPacking()
	clear(q.rem)
	for _, level := range levels {
		for i := range c.classes {
			if c.classes[i].prio == level {
				q.rem[i] = c.classes[i].count
			}
		}
		g.topUp(q)
	}
	if g.topUp(p); q.betterThan(c, p) {
		return q
	}
	return p
}

// topUp packs what is left in p: into the room of the bins it has, then into
// what more may be bought.
func (g *greedy) topUp(p *packing) {
	g.price(p)
	for k := 0; k < len(p.patterns) && p.left() > 0; {
		if !g.topUpPattern(p, k) {
			k++
		}
	}
	g.construct(p, firstRule, nil)
}

// seat packs what is left in p where something has made room for it, and tells
// whether it did. Looking costs little where there is no room.
func (g *greedy) seat(p *packing) bool {
	before := p.left()
	for k := range p.patterns {
		if g.hasRoom(p.patterns[k].kind, p.patterns[k].items, p) {
			g.topUp(p)
			return p.left() < before
		}
	}
	for _, t := range g.c.buyable {
		if p.lim.room(g.c, t) > 0 && g.hasRoom(t, nil, p) {
			g.topUp(p)
			return p.left() < before
		}
	}
	return false
}

// hasRoom tells whether an item left in p fits in a bin of kind t beside what
// the bin has.
func (g *greedy) hasRoom(t int32, items []content, p *packing) bool {
	c, f := g.c, g.fill
	f.begin(t)
	for _, it := range items {
		f.put(it.class, int(it.n))
	}
	sigs := c.cols[c.kinds[t].col].sigs
	for i, n := range p.rem {
		if n > 0 && sigs.Has(c.classes[i].sig) && f.room(int32(i), 1) > 0 {
			return true
		}
	}
	g.steps += int64(len(items) + len(p.rem))
	return false
}

// topUpPattern adds items to as many bins of pattern k as there are items for,
// which become a pattern of their own at the end, and tells whether it did.
func (g *greedy) topUpPattern(p *packing, k int) bool {
	c, f := g.c, g.fill
	pt := p.patterns[k]
	f.begin(pt.kind)
	for _, it := range pt.items {
		f.put(it.class, int(it.n))
	}
	// The filler counts what is in the bin as part of what it may use.
	for _, it := range pt.items {
		p.rem[it.class] += int(it.n)
	}
	g.cands = c.compatible(c.cols[c.kinds[pt.kind].col].sigs, g.cands[:0])
	w := g.w[c.at(c.listed[pt.kind]):][:c.d]
	f.fill(nil, g.cands, p.rem, w, g.value, firstRule, &g.rng)
	for _, it := range pt.items {
		p.rem[it.class] -= int(it.n)
	}
	times := pt.times
	was := map[int32]int32{}
	for _, it := range pt.items {
		was[it.class] = it.n
	}
	more := false
	for _, i := range f.touched {
		if n := int(f.got[i] - was[i]); n > 0 {
			times = min(times, p.rem[i]/n)
			more = true
		}
	}
	if !more {
		return false
	}
	// Take the bins out of the packing, then buy them again as they are now.
	p.remove(c, k, times)
	p.buy(f, pt.kind, times)
	return true
}

// remove takes bins of pattern k out of p.
func (p *packing) remove(c *core, k, times int) {
	pt := &p.patterns[k]
	for _, it := range pt.items {
		p.rem[it.class] += int(it.n) * times
	}
	p.lim.open(c, pt.kind, -times)
	p.cost -= c.kinds[pt.kind].cost * int64(times)
	if pt.times -= times; pt.times == 0 {
		p.patterns = slices.Delete(p.patterns, k, k+1)
	}
}
