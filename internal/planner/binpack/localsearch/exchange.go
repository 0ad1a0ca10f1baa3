package localsearch

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// exchange makes bins smaller by moving their items, one by one or in exchange
// for others, into the room that other bins have to spare, until what is left of
// them fits into a cheaper type. Where bins hold a handful of items each it finds
// far more in a short time than taking them apart, which search does.
type exchange struct {
	c       *reduced.Problem
	lim     *reduced.Limits
	meter   *meter.Meter
	rng     reduced.RNG
	bins    []loaded
	size    []int64   // by class and dimension
	none    []int64   // the size of nothing
	inv     []float64 // by dimension, what makes lacks of different dimensions comparable
	promise float64   // the part of what is in the way for which a partner must have room
	steps   int64     // since the meter was last told
	saved   int64     // the cost saved so far
}

// loaded is a bin with what is in it.
type loaded struct {
	binType int32
	items   []reduced.Content
	free    []int64
}

// move takes an item out of one bin, and another back for it if back is not
// negative; they are places in the lists of items.
type move struct{ out, back int }

// Exchanges are worth while where a bin has no more than fewPerBin classes on
// average, and affordable for mostExchanged bins.
const (
	fewPerBin     = 16
	mostExchanged = 20_000
)

// Every pass over the bins looks at so many others for each, twice as many when
// the last one saved little, which is a part of the cost.
const (
	leastPartners, mostPartners = 64, 512
	little                      = 0.004
)

// The part of what is in the way for which a bin must have room is mostPromising to
// one of the partners looked at: few have to be good ones, and where that no longer
// helps, many need not be.
const mostPromising = 32.0

// Exchange improves p by exchanges until they help no more, which takes a
// third of the budget at most.
func Exchange(p *reduced.Packing, m *meter.Meter, seed uint64) {
	c := p.Problem
	e := &exchange{c: c, lim: p.Limits, meter: m, rng: reduced.RNG(seed), none: make([]int64, c.Dims), inv: make([]float64, c.Dims)}
	if !e.load(p) {
		return
	}
	end := m.Steps + m.Limit/3
	for partners := leastPartners; partners <= mostPartners && !m.Over() && m.Steps < end; {
		before := e.saved
		e.promise = mostPromising / float64(partners)
		e.passes(partners, end)
		if float64(e.saved-before) <= little*float64(p.Cost) {
			partners *= 2
		}
	}
	if e.saved > 0 {
		e.store(p)
	}
}

// load takes the packing's bins apart, unless they are too many or too full.
func (e *exchange) load(p *reduced.Packing) bool {
	c, bins, items := e.c, 0, 0
	for _, pt := range p.Patterns {
		bins += pt.Times
		items += pt.Times * len(pt.Items)
	}
	if bins < 2 || bins > mostExchanged || items > bins*fewPerBin {
		return false
	}
	for d := range e.inv {
		e.inv[d] = 1 / c.Scale[d]
	}
	for i := range c.Classes {
		e.size = append(e.size, c.Classes[i].Size...)
	}
	free := make([]int64, bins*c.Dims)
	for _, pt := range p.Patterns {
		for range pt.Times {
			b := loaded{binType: pt.Type, items: slices.Clone(pt.Items), free: free[:c.Dims:c.Dims]}
			free = free[c.Dims:]
			copy(b.free, c.Types[pt.Type].Capacity)
			for _, it := range b.items {
				for d, v := range c.Classes[it.Class].Size {
					b.free[d] -= v * int64(it.Count)
				}
			}
			e.bins = append(e.bins, b)
		}
	}
	return true
}

// store writes the bins back, equal ones as one pattern.
func (e *exchange) store(p *reduced.Packing) {
	p.Patterns = p.Patterns[:0]
	at := map[string]int{}
	var key []byte
	for i := range e.bins {
		b := &e.bins[i]
		if len(b.items) == 0 {
			continue
		}
		slices.SortFunc(b.items, func(x, y reduced.Content) int { return int(x.Class) - int(y.Class) })
		key = binary.LittleEndian.AppendUint32(key[:0], uint32(b.binType))
		for _, it := range b.items {
			key = binary.LittleEndian.AppendUint32(key, uint32(it.Class))
			key = binary.LittleEndian.AppendUint32(key, uint32(it.Count))
		}
		if k, ok := at[string(key)]; ok {
			p.Patterns[k].Times++
			continue
		}
		at[string(key)] = len(p.Patterns)
		p.Patterns = append(p.Patterns, reduced.Pattern{Type: b.binType, Times: 1, Items: b.items})
	}
	p.Cost -= e.saved
}

// pass tries to make every bin smaller once, those first that lack least.
func (e *exchange) pass(partners int, end int64) {
	type wish struct {
		bin  int
		lack float64
	}
	var wishes []wish
	for i := range e.bins {
		if _, lack := e.aim(i); !math.IsInf(lack, 1) {
			wishes = append(wishes, wish{i, lack})
		}
	}
	reduced.SortBy(wishes, func(w wish) float64 { return w.lack })
	for _, w := range wishes {
		e.shrink(w.bin, partners)
		e.meter.Spend(e.steps)
		if e.steps = 0; e.meter.Over() || e.meter.Steps >= end {
			return
		}
	}
}

// aim is the type that bin i is nearest to for what it would save, and how much
// of the load is in its way per dollar.
func (e *exchange) aim(i int) (int32, float64) {
	c, b := e.c, &e.bins[i]
	best, at := math.Inf(1), int32(-1)
	k := &c.Types[b.binType]
	if k.Fixed || len(b.items) == 0 {
		return -1, best
	}
	for _, t := range c.Buyable {
		o := &c.Types[t]
		if o.Cost >= k.Cost {
			break
		}
		lack := 0.0
		limit := best * float64(k.Cost-o.Cost)
		for d, v := range k.Capacity {
			if over := v - b.free[d] - o.Capacity[d]; over > 0 {
				if lack += float64(over) * e.inv[d]; lack >= limit {
					break
				}
			}
		}
		e.steps++
		if lack < limit && e.lim.Room(t) > 0 && c.Holds(t, b.items) {
			best, at = lack/float64(k.Cost-o.Cost), t
		}
	}
	return at, best
}

// shrink moves load of bin i elsewhere until it fits in a cheaper type.
func (e *exchange) shrink(i, partners int) {
	c := e.c
	t, _ := e.aim(i)
	if t < 0 {
		return
	}
	b := &e.bins[i]
	over := make([]int64, c.Dims) // what is in the way
	for d, v := range c.Types[b.binType].Capacity {
		over[d] = v - b.free[d] - c.Types[t].Capacity[d]
	}
	n := len(e.bins)
	at := e.rng.Below(n)
	for range min(n, partners) {
		if e.excess(over) == 0 {
			break
		}
		if at++; at >= n {
			at = 0
		}
		if at == i || !e.promising(at, over) {
			continue
		}
		if mv, ok := e.best(i, at, t, over); ok {
			e.apply(i, at, mv, over)
		}
	}
	if e.excess(over) > 0 {
		return
	}
	e.lim.Open(b.binType, -1)
	e.saved += c.Types[b.binType].Cost
	if len(b.items) == 0 {
		return
	}
	e.lim.Open(t, 1)
	e.saved -= c.Types[t].Cost
	for d, v := range c.Types[t].Capacity {
		b.free[d] += v - c.Types[b.binType].Capacity[d]
	}
	b.binType = t
}

// promising tells whether bin j has room for a good part of what is in the way.
func (e *exchange) promising(j int, over []int64) bool {
	a := &e.bins[j]
	e.steps++
	all, part := 0.0, 0.0
	for d, v := range over {
		if v > 0 {
			all += float64(v) * e.inv[d]
			part += float64(min(v, a.free[d])) * e.inv[d]
		}
	}
	return part > all*e.promise && len(a.items) > 0
}

// excess is how much is in the way over all dimensions.
func (e *exchange) excess(over []int64) float64 {
	sum := 0.0
	for d, v := range over {
		if v > 0 {
			sum += float64(v) * e.inv[d]
		}
	}
	return sum
}

// best is the move from bin i, which is to become of type t, to bin j that leaves
// least in the way.
func (e *exchange) best(i, j int, t int32, over []int64) (move, bool) {
	a, b, d := &e.bins[j], &e.bins[i], e.c.Dims
	least, found, ok := e.excess(over)*(1-1e-6), move{}, false
	for x := range b.items {
		sx := e.size[int(b.items[x].Class)*d:][:d]
		for y := -1; y < len(a.items); y++ {
			sy := e.none
			if y >= 0 {
				sy = e.size[int(a.items[y].Class)*d:][:d]
			}
			e.steps++
			left := 0.0
			for q, v := range sx {
				v -= sy[q]
				if v > a.free[q] || -v > b.free[q] {
					left = math.Inf(1)
					break
				}
				if o := over[q] - v; o > 0 {
					left += float64(o) * e.inv[q]
				}
			}
			if left < least && e.allowed(b, a, move{x, y}, t) {
				least, found, ok = left, move{x, y}, true
			}
		}
	}
	return found, ok
}

// allowed tells whether the rules but for size admit a move from b to a, when b
// is to become of type t.
func (e *exchange) allowed(b, a *loaded, mv move, t int32) bool {
	x := b.items[mv.out].Class
	y := int32(-1)
	if mv.back >= 0 {
		if y = a.items[mv.back].Class; y == x || !e.admits(b, y, x, t) || !e.admits(b, y, x, b.binType) {
			return false
		}
	}
	return e.admits(a, x, y, a.binType)
}

// admits tells whether an item of class i may join the bin, as of type t, once
// one of class but, if that is not negative, has left.
func (e *exchange) admits(b *loaded, i, but, t int32) bool {
	cl := &e.c.Classes[i]
	if !e.c.Takes(&e.c.Types[t], cl) {
		return false
	}
	for _, it := range b.items {
		if it.Class == i && int(it.Count) >= cl.PerBin {
			return false
		}
		if it.Class != i && len(cl.Conflicts) > 0 && (it.Class != but || it.Count > 1) &&
			intersect(cl.Conflicts, e.c.Classes[it.Class].Conflicts) {
			return false
		}
	}
	return true
}

// intersect tells whether two sorted lists have a number in common.
func intersect(a, b []int32) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// apply makes a move from bin i to bin j.
func (e *exchange) apply(i, j int, mv move, over []int64) {
	b, a := &e.bins[i], &e.bins[j]
	x := b.items[mv.out].Class
	y := int32(-1)
	if mv.back >= 0 {
		y = a.items[mv.back].Class
	}
	e.put(b, x, -1)
	e.put(a, x, 1)
	for d, v := range e.c.Classes[x].Size {
		over[d] -= v
	}
	if y >= 0 {
		e.put(a, y, -1)
		e.put(b, y, 1)
		for d, v := range e.c.Classes[y].Size {
			over[d] += v
		}
	}
}

// put adds an item of class i to a bin, or takes one out for n of -1.
func (e *exchange) put(b *loaded, i, n int32) {
	for d, v := range e.c.Classes[i].Size {
		b.free[d] -= v * int64(n)
	}
	for k := range b.items {
		if b.items[k].Class == i {
			if b.items[k].Count += n; b.items[k].Count == 0 {
				b.items = slices.Delete(b.items, k, k+1)
			}
			return
		}
	}
	b.items = append(b.items, reduced.Content{Class: i, Count: n})
}
