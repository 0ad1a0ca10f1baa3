package construct

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// Ration packs again when limits leave items out, the classes of highest
// priority first, and returns the better of the two packings.
func (g *Builder) Ration(p *reduced.Packing) *reduced.Packing {
	c := g.c
	var levels []int32
	for i := range c.Classes {
		levels = append(levels, c.Classes[i].Priority)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	slices.Reverse(levels)
	q := c.NewPacking()
	clear(q.Remaining)
	for _, level := range levels {
		for i := range c.Classes {
			if c.Classes[i].Priority == level {
				q.Remaining[i] = c.Classes[i].Count
			}
		}
		g.TopUp(q)
	}
	if g.TopUp(p); q.BetterThan(p) {
		return q
	}
	return p
}

// TopUp packs what is left in p: into the room of the bins it has, then into
// what more may be bought.
func (g *Builder) TopUp(p *reduced.Packing) {
	g.Pricer.Price(p.Remaining, p.Limits)
	for k := 0; k < len(p.Patterns) && p.Left() > 0; {
		if !g.topUpPattern(p, k) {
			k++
		}
	}
	g.construct(p, FirstRule, nil)
}

// Seat packs what is left in p where something has made room for it, and tells
// whether it did. Looking costs little where there is no room.
func (g *Builder) Seat(p *reduced.Packing) bool {
	before := p.Left()
	for k := range p.Patterns {
		if g.hasRoom(p.Patterns[k].Type, p.Patterns[k].Items, p) {
			g.TopUp(p)
			return p.Left() < before
		}
	}
	for _, t := range g.c.Buyable {
		if p.Limits.Room(t) > 0 && g.hasRoom(t, nil, p) {
			g.TopUp(p)
			return p.Left() < before
		}
	}
	return false
}

// hasRoom tells whether an item left in p fits in a bin of type t beside what
// the bin has.
func (g *Builder) hasRoom(t int32, items []reduced.Content, p *reduced.Packing) bool {
	c, bin := g.c, &g.fillings.fill.Bin
	bin.Begin(t)
	bin.PutAll(items)
	sigs := c.Acceptances[c.Types[t].Acceptance]
	for i, n := range p.Remaining {
		if n > 0 && sigs.Has(c.Classes[i].Signature) && bin.room(int32(i), 1) > 0 {
			return true
		}
	}
	g.steps += int64(len(items) + len(p.Remaining))
	return false
}

// topUpPattern adds items to as many bins of pattern k as there are items for,
// which become a pattern of their own at the end, and tells whether it did.
func (g *Builder) topUpPattern(p *reduced.Packing, k int) bool {
	bin := &g.fillings.fill.Bin
	pt := p.Patterns[k]
	// The filler counts what is in the bin as part of what it may use.
	for _, it := range pt.Items {
		p.Remaining[it.Class] += int(it.Count)
	}
	g.fillings.addAny(p.Remaining, pt.Type, pt.Items, g.Pricer.At(g.List.StandIn[pt.Type]), FirstRule)
	for _, it := range pt.Items {
		p.Remaining[it.Class] -= int(it.Count)
	}
	times := pt.Times
	was := map[int32]int32{}
	for _, it := range pt.Items {
		was[it.Class] = it.Count
	}
	more := false
	for _, i := range bin.Touched {
		if n := int(bin.got[i] - was[i]); n > 0 {
			times = min(times, p.Remaining[i]/n)
			more = true
		}
	}
	if !more {
		return false
	}
	// Take the bins out of the packing, then buy them again as they are now.
	p.Remove(k, times)
	p.Buy(pt.Type, bin.Contents(), times)
	return true
}
