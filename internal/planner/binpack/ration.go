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
	if g.topUp(p); q.betterThan(p) {
		return q
	}
	return p
}

// topUp packs what is left in p: into the room of the bins it has, then into
// what more may be bought.
func (g *greedy) topUp(p *packing) {
	g.prices.price(p.rem, p.lim)
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
		if p.lim.room(t) > 0 && g.hasRoom(t, nil, p) {
			g.topUp(p)
			return p.left() < before
		}
	}
	return false
}

// hasRoom tells whether an item left in p fits in a bin of kind t beside what
// the bin has.
func (g *greedy) hasRoom(t int32, items []content, p *packing) bool {
	c, bin := g.c, &g.fillings.fill.bin
	bin.begin(t)
	bin.putAll(items)
	sigs := c.cols[c.kinds[t].col]
	for i, n := range p.rem {
		if n > 0 && sigs.Has(c.classes[i].sig) && bin.room(int32(i), 1) > 0 {
			return true
		}
	}
	g.steps += int64(len(items) + len(p.rem))
	return false
}

// topUpPattern adds items to as many bins of pattern k as there are items for,
// which become a pattern of their own at the end, and tells whether it did.
func (g *greedy) topUpPattern(p *packing, k int) bool {
	bin := &g.fillings.fill.bin
	pt := p.patterns[k]
	// The filler counts what is in the bin as part of what it may use.
	for _, it := range pt.items {
		p.rem[it.class] += int(it.n)
	}
	g.fillings.addAny(p.rem, pt.kind, pt.items, g.prices.at(g.menu.listed[pt.kind]), firstRule)
	for _, it := range pt.items {
		p.rem[it.class] -= int(it.n)
	}
	times := pt.times
	was := map[int32]int32{}
	for _, it := range pt.items {
		was[it.class] = it.n
	}
	more := false
	for _, i := range bin.touched {
		if n := int(bin.got[i] - was[i]); n > 0 {
			times = min(times, p.rem[i]/n)
			more = true
		}
	}
	if !more {
		return false
	}
	// Take the bins out of the packing, then buy them again as they are now.
	p.remove(k, times)
	p.buy(pt.kind, bin.contents(), times)
	return true
}
