package construct

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// strictly is how many priorities are packed one after the other. More are packed in groups.
const strictly = 64

// mostTrials bounds how often a group of priorities is tried that need not fit whole.
const mostTrials = 128

// Ration packs again when limits leave items out, the classes of highest priority first and, with
// smallFirst, of those of one priority the smallest, since of small items more have room. It returns
// the better of the two packings.
func (g *Builder) Ration(p *reduced.Packing, smallFirst bool) *reduced.Packing {
	levels := byPriority(g.c)
	if smallFirst {
		levels = bySize(g.c, levels)
	}
	q := g.packInOrder(levels)
	g.TopUp(p)
	g.Grow(p)
	if g.Grow(q); q.BetterThan(p) {
		return q
	}
	return p
}

// packInOrder packs one level of classes after the other.
func (g *Builder) packInOrder(levels [][]int32) *reduced.Packing {
	q := g.c.NewPacking()
	clear(q.Remaining)
	if len(levels) > strictly {
		return g.topUpInGroups(q, levels)
	}
	for _, level := range levels {
		g.ask(q, level)
		g.TopUp(q)
	}
	return q
}

// bySize makes a level of each class, within its priority the smaller before the larger: by the
// dimension of which an item takes the largest share of what types have.
func bySize(c *reduced.Problem, priorities [][]int32) [][]int32 {
	share := make([]float64, len(c.Classes))
	for i := range share {
		for d, v := range c.Classes[i].Size {
			share[i] = max(share[i], float64(v)/c.Scale[d])
		}
	}
	var levels [][]int32
	for _, level := range priorities {
		order := slices.Clone(level)
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(share[a], share[b]) })
		for i := range order {
			levels = append(levels, order[i:i+1])
		}
	}
	return levels
}

// byPriority lists the classes of each priority, the highest first.
func byPriority(c *reduced.Problem) [][]int32 {
	at := map[int32]int{}
	var levels [][]int32
	for i := range c.Classes {
		priority := c.Classes[i].Priority
		l, known := at[priority]
		if !known {
			l = len(levels)
			at[priority] = l
			levels = append(levels, nil)
		}
		levels[l] = append(levels[l], int32(i))
	}
	slices.SortFunc(levels, func(a, b []int32) int { return cmp.Compare(c.Classes[b[0]].Priority, c.Classes[a[0]].Priority) })
	return levels
}

// ask adds all items of classes to what a packing has to place.
func (g *Builder) ask(p *reduced.Packing, classes []int32) {
	for _, i := range classes {
		p.Remaining[i] = g.c.Classes[i].Count
	}
}

// topUpInGroups adds the items of one priority after the other to q: of as many at a time as
// fit whole, which it finds by doubling and halving, since to pack takes long and the first
// thousand priorities may all fit. Classes for which there is no room any more do not count. When
// it has tried often it takes groups that fit in part, within which priorities do not count.
func (g *Builder) topUpInGroups(q *reduced.Packing, levels [][]int32) *reduced.Packing {
	trial, size := g.c.NewPacking(), 1
	for trials := 0; len(levels) > 0; {
		size = min(size, len(levels))
		group := slices.Concat(levels[:size]...)
		fitting := slices.DeleteFunc(slices.Clone(group), func(i int32) bool { return !g.takes(q, i) })
		if len(fitting) == 0 {
			g.ask(q, group)
			levels = levels[size:]
			continue
		}
		trial.CopyFrom(q)
		g.ask(trial, group)
		g.TopUp(trial)
		trials++
		whole := !slices.ContainsFunc(fitting, func(i int32) bool { return trial.Remaining[i] > 0 })
		if !whole && size > 1 && trials < mostTrials {
			size /= 2
			continue
		}
		q, trial = trial, q
		levels = levels[size:]
		if whole || trials >= mostTrials {
			size *= 2
		}
	}
	return q
}

// takes tells whether a bin of p or one that may be bought has room for an item of a class.
func (g *Builder) takes(p *reduced.Packing, class int32) bool {
	for k := range p.Patterns {
		if g.holds(p.Patterns[k].Type, p.Patterns[k].Items, class) {
			return true
		}
	}
	buyable := func(t int32) bool { return p.Limits.Room(t) > 0 && g.holds(t, nil, class) }
	return slices.ContainsFunc(g.c.Fixed, buyable) || slices.ContainsFunc(g.c.Buyable, buyable)
}

// holds tells whether an item of a class fits in a bin of type t beside what the bin has.
func (g *Builder) holds(t int32, items []reduced.Content, class int32) bool {
	g.steps++
	if !g.c.Acceptances[g.c.Types[t].Acceptance].Has(g.c.Classes[class].Signature) {
		return false
	}
	g.steps += int64(len(items))
	bin := &g.fillings.fill.Bin
	bin.Begin(t)
	bin.PutAll(items)
	return bin.room(class, 1) > 0
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
