package construct

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// mostGrown bounds how many patterns are looked at for a larger type, mostGrowSteps how many types
// and classes in all.
const (
	mostGrown     = 64
	mostGrowSteps = 1 << 21
)

// growth is a bin of a pattern as another type, with items that were left out beside its own.
type growth struct {
	pattern int
	binType int32
	items   []reduced.Content
	// priority is the highest of an item that gets a place, and price what each item of that
	// priority costs.
	priority int32
	price    float64
}

// grower lets bins of a packing grow.
type grower struct {
	builder *Builder
	packing *reduced.Packing
	// left are the classes with items that are left out, the highest priority first.
	left []int32
}

// Grow replaces bins by larger ones while that gives items a place that are left out, since limits
// allow no further bin: those of the highest priority first, then where it costs least for each.
func (g *Builder) Grow(p *reduced.Packing) {
	for end := g.steps + mostGrowSteps; p.Left() > 0 && g.steps < end; {
		w := grower{g, p, leftByPriority(p)}
		var best *growth
		for k := range min(len(p.Patterns), mostGrown) {
			if own := w.grown(k); own != nil && (best == nil || own.before(best)) {
				best = own
			}
		}
		if best == nil {
			return
		}
		p.Remove(best.pattern, 1)
		p.Buy(best.binType, best.items, 1)
	}
}

// before reports whether a growth is to be preferred.
func (x *growth) before(y *growth) bool {
	return cmp.Or(cmp.Compare(y.priority, x.priority), cmp.Compare(x.price, y.price)) < 0
}

// leftByPriority lists the classes with items that are left out, the highest priority first.
func leftByPriority(p *reduced.Packing) []int32 {
	var out []int32
	for i, n := range p.Remaining {
		if n > 0 {
			out = append(out, int32(i))
		}
	}
	classes := p.Problem.Classes
	slices.SortStableFunc(out, func(a, b int32) int { return cmp.Compare(classes[b].Priority, classes[a].Priority) })
	return out
}

// grown is the best larger type for a bin of a pattern, nil where none may be bought in its place
// that holds more.
func (w *grower) grown(k int) *growth {
	g, p, pt := w.builder, w.packing, &w.packing.Patterns[k]
	c := g.c
	if c.Types[pt.Type].Fixed {
		return nil
	}
	clear(g.load)
	for _, it := range pt.Items {
		for d, v := range c.Classes[it.Class].Size {
			g.load[d] += v * int64(it.Count)
		}
	}
	p.Limits.Open(pt.Type, -1)
	defer p.Limits.Open(pt.Type, 1)
	var best *growth
	for _, t := range c.Buyable {
		g.steps++
		larger := c.Types[t].Cost > c.Types[pt.Type].Cost && reduced.Fits(g.load, c.Types[t].Capacity)
		if !larger || p.Limits.Room(t) == 0 || !c.Holds(t, pt.Items) {
			continue
		}
		own := growth{pattern: k, binType: t, price: float64(c.Types[t].Cost - c.Types[pt.Type].Cost)}
		if w.addLeft(&own, pt.Items) && (best == nil || own.before(best)) {
			best = &own
		}
	}
	return best
}

// addLeft fills a bin that has the items up with what is left out, and reports whether any has room.
func (w *grower) addLeft(own *growth, items []reduced.Content) bool {
	g, c, bin := w.builder, w.builder.c, &w.builder.fillings.fill.Bin
	sigs := c.Acceptances[c.Types[own.binType].Acceptance]
	bin.Begin(own.binType)
	bin.PutAll(items)
	placed := 0 // of the highest priority
	g.steps += int64(len(w.left))
	for _, i := range w.left {
		cl := &c.Classes[i]
		if !sigs.Has(cl.Signature) {
			continue
		}
		n := bin.room(i, w.packing.Remaining[i])
		if n == 0 {
			continue
		}
		bin.Put(i, n)
		if placed == 0 || cl.Priority == own.priority {
			own.priority = cl.Priority
			placed += n
		}
	}
	if placed == 0 {
		return false
	}
	own.price /= float64(placed)
	own.items = bin.Contents()
	return true
}
