package binpack

import (
	"encoding/binary"
	"math"
	"slices"
)

// exchange makes bins smaller by moving their items, one by one or in exchange
// for others, into the room that other bins have to spare, until what is left of
// them fits into a cheaper kind. Where bins hold a handful of items each it finds
// far more in a short time than taking them apart, which search does.
type exchange struct {
	c       *core
	lim     *limits
	m       *meter
	rng     random
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
	kind  int32
	items []content
	free  []int64
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

// exchangeItems improves p by exchanges until they help no more, which takes a
// third of the budget at most.
func exchangeItems(p *packing, m *meter, seed uint64) {
	c := p.c
	e := &exchange{c: c, lim: p.lim, m: m, rng: random(seed), none: make([]int64, c.d), inv: make([]float64, c.d)}
	if !e.load(p) {
		return
	}
	end := m.steps + m.limit/3
	for partners := leastPartners; partners <= mostPartners && !m.over() && m.steps < end; {
		before := e.saved
		e.promise = mostPromising / float64(partners)
		e.passes(partners, end)
		if float64(e.saved-before) <= little*float64(p.cost) {
			partners *= 2
		}
	}
	if e.saved > 0 {
		e.store(p)
	}
}

// load takes the packing's bins apart, unless they are too many or too full.
func (e *exchange) load(p *packing) bool {
	c, bins, items := e.c, 0, 0
	for _, pt := range p.patterns {
		bins += pt.times
		items += pt.times * len(pt.items)
	}
	if bins < 2 || bins > mostExchanged || items > bins*fewPerBin {
		return false
	}
	for d := range e.inv {
		e.inv[d] = 1 / c.scale[d]
	}
	for i := range c.classes {
		e.size = append(e.size, c.classes[i].size...)
	}
	free := make([]int64, bins*c.d)
	for _, pt := range p.patterns {
		for range pt.times {
			b := loaded{kind: pt.kind, items: slices.Clone(pt.items), free: free[:c.d:c.d]}
			free = free[c.d:]
			copy(b.free, c.kinds[pt.kind].cap)
			for _, it := range b.items {
				for d, v := range c.classes[it.class].size {
					b.free[d] -= v * int64(it.n)
				}
			}
			e.bins = append(e.bins, b)
		}
	}
	return true
}

// store writes the bins back, equal ones as one pattern.
func (e *exchange) store(p *packing) {
	p.patterns = p.patterns[:0]
	at := map[string]int{}
	var key []byte
	for i := range e.bins {
		b := &e.bins[i]
		if len(b.items) == 0 {
			continue
		}
		slices.SortFunc(b.items, func(x, y content) int { return int(x.class) - int(y.class) })
		key = binary.LittleEndian.AppendUint32(key[:0], uint32(b.kind))
		for _, it := range b.items {
			key = binary.LittleEndian.AppendUint32(key, uint32(it.class))
			key = binary.LittleEndian.AppendUint32(key, uint32(it.n))
		}
		if k, ok := at[string(key)]; ok {
			p.patterns[k].times++
			continue
		}
		at[string(key)] = len(p.patterns)
		p.patterns = append(p.patterns, pattern{b.kind, 1, b.items})
	}
	p.cost -= e.saved
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
	sortBy(wishes, func(w wish) float64 { return w.lack })
	for _, w := range wishes {
		e.shrink(w.bin, partners)
		e.m.spend(e.steps)
		if e.steps = 0; e.m.over() || e.m.steps >= end {
			return
		}
	}
}

// aim is the kind that bin i is nearest to for what it would save, and how much
// of the load is in its way per dollar.
func (e *exchange) aim(i int) (int32, float64) {
	c, b := e.c, &e.bins[i]
	best, at := math.Inf(1), int32(-1)
	k := &c.kinds[b.kind]
	if k.fixed || len(b.items) == 0 {
		return -1, best
	}
	for _, t := range c.buyable {
		o := &c.kinds[t]
		if o.cost >= k.cost {
			break
		}
		lack := 0.0
		limit := best * float64(k.cost-o.cost)
		for d, v := range k.cap {
			if over := v - b.free[d] - o.cap[d]; over > 0 {
				if lack += float64(over) * e.inv[d]; lack >= limit {
					break
				}
			}
		}
		e.steps++
		if lack < limit && e.lim.room(t) > 0 && c.holds(t, b.items) {
			best, at = lack/float64(k.cost-o.cost), t
		}
	}
	return at, best
}

// shrink moves load of bin i elsewhere until it fits in a cheaper kind.
func (e *exchange) shrink(i, partners int) {
	c := e.c
	t, _ := e.aim(i)
	if t < 0 {
		return
	}
	b := &e.bins[i]
	over := make([]int64, c.d) // what is in the way
	for d, v := range c.kinds[b.kind].cap {
		over[d] = v - b.free[d] - c.kinds[t].cap[d]
	}
	n := len(e.bins)
	at := e.rng.below(n)
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
	e.lim.open(b.kind, -1)
	e.saved += c.kinds[b.kind].cost
	if len(b.items) == 0 {
		return
	}
	e.lim.open(t, 1)
	e.saved -= c.kinds[t].cost
	for d, v := range c.kinds[t].cap {
		b.free[d] += v - c.kinds[b.kind].cap[d]
	}
	b.kind = t
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

// best is the move from bin i, which is to become of kind t, to bin j that leaves
// least in the way.
func (e *exchange) best(i, j int, t int32, over []int64) (move, bool) {
	a, b, d := &e.bins[j], &e.bins[i], e.c.d
	least, found, ok := e.excess(over)*(1-1e-6), move{}, false
	for x := range b.items {
		sx := e.size[int(b.items[x].class)*d:][:d]
		for y := -1; y < len(a.items); y++ {
			sy := e.none
			if y >= 0 {
				sy = e.size[int(a.items[y].class)*d:][:d]
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
// is to become of kind t.
func (e *exchange) allowed(b, a *loaded, mv move, t int32) bool {
	x := b.items[mv.out].class
	y := int32(-1)
	if mv.back >= 0 {
		if y = a.items[mv.back].class; y == x || !e.admits(b, y, x, t) || !e.admits(b, y, x, b.kind) {
			return false
		}
	}
	return e.admits(a, x, y, a.kind)
}

// admits tells whether an item of class i may join the bin, as of kind t, once
// one of class but, if that is not negative, has left.
func (e *exchange) admits(b *loaded, i, but, t int32) bool {
	cl := &e.c.classes[i]
	if !e.c.takes(&e.c.kinds[t], cl) {
		return false
	}
	for _, it := range b.items {
		if it.class == i && int(it.n) >= cl.perBin {
			return false
		}
		if it.class != i && len(cl.conf) > 0 && (it.class != but || it.n > 1) && share(cl.conf, e.c.classes[it.class].conf) {
			return false
		}
	}
	return true
}

// share tells whether two sorted lists have a number in common.
func share(a, b []int32) bool {
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
	x := b.items[mv.out].class
	y := int32(-1)
	if mv.back >= 0 {
		y = a.items[mv.back].class
	}
	e.put(b, x, -1)
	e.put(a, x, 1)
	for d, v := range e.c.classes[x].size {
		over[d] -= v
	}
	if y >= 0 {
		e.put(a, y, -1)
		e.put(b, y, 1)
		for d, v := range e.c.classes[y].size {
			over[d] += v
		}
	}
}

// put adds an item of class i to a bin, or takes one out for n of -1.
func (e *exchange) put(b *loaded, i, n int32) {
	for d, v := range e.c.classes[i].size {
		b.free[d] -= v * int64(n)
	}
	for k := range b.items {
		if b.items[k].class == i {
			if b.items[k].n += n; b.items[k].n == 0 {
				b.items = slices.Delete(b.items, k, k+1)
			}
			return
		}
	}
	b.items = append(b.items, content{i, n})
}
