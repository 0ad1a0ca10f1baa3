package binpack

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// kind is a bin type after reduction.
type kind struct {
	cap   []int64
	cost  int64
	max   int // -1 is no limit
	fixed bool
	from  int // the caller's bin type
	// orig are the caller's bin types that this one stands for. More than one
	// only for fixed bins that are alike.
	orig []int
	use  []int64 // by shared limit; nil when it uses none
	// col names the set of compatible signatures, interned in core.cols.
	col int
}

// class is a counted item after reduction.
type class struct {
	size   []int64
	fsize  []float64 // size in units of core.scale
	count  int
	perBin int // math.MaxInt when there is no cap
	prio   int32
	conf   []int32 // dense conflict ids that at least two classes share
	sig    int     // interned set of compatible bin types
	// orig are the caller's classes merged into this one.
	orig []int
}

// core is the reduced problem on which everything else works.
type core struct {
	d       int
	scale   []float64
	classes []class
	kinds   []kind
	cols    []Bitset
	shared  []int64 // what is left of every shared limit
	nconf   int
	nsig    int
	buyable []int32 // kinds that are not fixed, cheapest first
	fixed   []int32
	// varies says, by dimension, whether buyable kinds have more or less of it.
	varies []bool
}

// reducer makes a core of a Problem.
type reducer struct {
	p *Problem
	c *core
	// usable are the caller's bin types that are well formed and may be bought.
	usable Bitset
	// unplaced is, by the caller's class, how many items no bin can hold.
	unplaced []int
}

// reduce merges what cannot be told apart and drops what cannot be of use. The
// second result is, by the caller's class, how many items no bin can hold.
func reduce(p *Problem) (*core, []int) {
	r := &reducer{p: p, c: &core{d: p.Dims}, usable: usableBins(p), unplaced: make([]int, len(p.Classes))}
	sigs := r.mergeClasses()
	for _, s := range p.Shared {
		r.c.shared = append(r.c.shared, max(0, s.Left))
	}
	r.buildKinds(sigs)
	r.dropUnplaceable()
	r.c.finish()
	return r.c, r.unplaced
}

// maxCost keeps sums of costs away from overflow: 2^44 micro-dollars are
// seventeen million dollars an hour.
const maxCost = int64(1) << 44

func usableBins(p *Problem) Bitset {
	b := NewBitset(len(p.Bins))
	for i := range p.Bins {
		t := &p.Bins[i]
		ok := len(t.Capacity) == p.Dims && t.Cost >= 0 && t.Cost <= maxCost && t.Max != 0
		for _, v := range t.Capacity {
			ok = ok && v >= 0
		}
		for s := range p.Shared {
			if u := useOf(&p.Shared[s], i); u > 0 && u > p.Shared[s].Left {
				ok = false
			}
		}
		if ok {
			b.Set(i)
		}
	}
	return b
}

func useOf(s *Shared, bin int) int64 {
	if bin >= len(s.Use) {
		return 0
	}
	return max(0, s.Use[bin])
}

// buildKinds fills c.kinds with the bin types worth looking at, and c.cols.
func (r *reducer) buildKinds(sigs []Bitset) {
	p, c := r.p, r.c
	colOf := map[string]int{}
	var key []byte
	takes := make([]Bitset, len(p.Bins))
	flat := NewBitset(64 * len(p.Bins) * ((len(sigs) + 63) / 64))
	for i := range takes {
		n := len(flat) / len(takes)
		takes[i] = flat[i*n : i*n+n : i*n+n]
	}
	for s, bins := range sigs {
		bins.Each(func(i int) { takes[i].Set(s) })
	}
	items := 0
	for i := range c.classes {
		items += c.classes[i].count
	}
	all := make([]kind, 0, len(p.Bins))
	for i := range p.Bins {
		b := &p.Bins[i]
		if !r.usable.Has(i) || takes[i].Empty() {
			continue
		}
		key = key[:0]
		for _, w := range takes[i] {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
		col, ok := colOf[string(key)]
		if !ok {
			col = len(c.cols)
			colOf[string(key)] = col
			c.cols = append(c.cols, takes[i])
		}
		k := kind{cap: b.Capacity, cost: b.Cost, max: b.Max, fixed: b.Fixed, from: i, col: col}
		if b.Fixed {
			k.cost, k.max = 0, 1
		}
		if k.max < 0 || k.max >= items {
			k.max = -1
		}
		for s := range p.Shared {
			if u := useOf(&p.Shared[s], i); u > 0 {
				if k.use == nil {
					k.use = make([]int64, len(p.Shared))
				}
				k.use[s] = u
			}
		}
		all = append(all, k)
	}
	c.kinds = groupFixed(r.dropDominated(all))
}

// dropDominated removes types that another type can always stand in for: no
// dearer, no smaller, at least as compatible, unlimited, and no hungrier for
// shared limits. Of equals the first stays.
func (r *reducer) dropDominated(all []kind) []kind {
	c := r.c
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	// A type can be beaten only by one that costs no more and, at the same
	// cost, has at least the same total capacity: those come first.
	total := make([]float64, len(all))
	for i := range all {
		for _, v := range all[i].cap {
			total[i] += float64(v)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &all[a], &all[b]
		if x.cost != y.cost {
			return cmp.Compare(x.cost, y.cost)
		}
		if total[a] != total[b] {
			return cmp.Compare(total[b], total[a])
		}
		if x.max != y.max {
			return cmp.Compare(x.max, y.max) // unlimited first
		}
		return a - b
	})
	keep := NewBitset(len(all))
	var front frontier
	for _, i := range order {
		k := &all[i]
		if !k.fixed && front.any(firstOf(k), func(n int) bool { return c.beats(&all[n], k) }) {
			continue
		}
		keep.Set(i)
		if !k.fixed && k.max < 0 {
			front.add(firstOf(k), i)
		}
	}
	out, froms := all[:0], make([]int, keep.Count())
	for i := range all {
		if keep.Has(i) {
			n := len(out)
			froms[n] = all[i].from
			all[i].orig = froms[n : n+1 : n+1]
			out = append(out, all[i])
		}
	}
	return out
}

// firstOf is what a kind has of the first dimension.
func firstOf(k *kind) int64 {
	if len(k.cap) == 0 {
		return 0
	}
	return k.cap[0]
}

// frontier lists kinds by what they have of the first dimension, the most last,
// so that only those with enough of it are looked at. Larger kinds mostly come
// later, as they cost more.
type frontier struct {
	first []int64
	kinds []int
}

func (f *frontier) add(first int64, kind int) {
	at := len(f.first)
	for at > 0 && f.first[at-1] > first {
		at--
	}
	f.first, f.kinds = slices.Insert(f.first, at, first), slices.Insert(f.kinds, at, kind)
}

// any reports whether one of the kinds with at least so much of the first
// dimension is as asked.
func (f *frontier) any(first int64, ask func(kind int) bool) bool {
	for n := len(f.first) - 1; n >= 0 && f.first[n] >= first; n-- {
		if ask(f.kinds[n]) {
			return true
		}
	}
	return false
}

// beats tells whether a can always be bought instead of b, for no more.
func (c *core) beats(a, b *kind) bool { return a.cost <= b.cost && c.standsFor(a, b) }

// standsFor tells whether a holds whatever b holds and takes no more of limits.
func (c *core) standsFor(a, b *kind) bool {
	if a.col != b.col && !c.cols[b.col].SubsetOf(c.cols[a.col]) {
		return false
	}
	for s, u := range a.use {
		if u > 0 && (b.use == nil || b.use[s] < u) {
			return false
		}
	}
	return fits(b.cap, a.cap)
}

// groupFixed makes one kind with a Max of fixed bins that are alike.
func groupFixed(in []kind) []kind {
	if !slices.ContainsFunc(in, func(k kind) bool { return k.fixed }) {
		return in
	}
	var out []kind
	at := map[string]int{}
	var key []byte
	for _, k := range in {
		if !k.fixed {
			out = append(out, k)
			continue
		}
		key = binary.LittleEndian.AppendUint32(key[:0], uint32(k.col))
		for _, v := range k.cap {
			key = binary.LittleEndian.AppendUint64(key, uint64(v))
		}
		for _, u := range k.use {
			key = binary.LittleEndian.AppendUint64(key, uint64(u))
		}
		if i, ok := at[string(key)]; ok {
			out[i].orig = append(out[i].orig, k.orig[0])
			out[i].max++
			continue
		}
		at[string(key)] = len(out)
		if k.max < 0 { // a single item: still one bin only
			k.max = 1
		}
		out = append(out, k)
	}
	return out
}

// dropUnplaceable moves classes that no kind can hold to unplaced.
func (r *reducer) dropUnplaceable() {
	c := r.c
	c.classes = slices.DeleteFunc(c.classes, func(cl class) bool {
		for i := range c.kinds {
			if k := &c.kinds[i]; c.canHold(k, &cl) {
				return false
			}
		}
		for _, o := range cl.orig {
			r.unplaced[o] = r.p.Classes[o].Count
		}
		return true
	})
}

// finish derives what the search looks up all the time.
func (c *core) finish() {
	c.scale = make([]float64, c.d)
	for i := range c.kinds {
		for d, v := range c.kinds[i].cap {
			c.scale[d] = max(c.scale[d], float64(v))
		}
	}
	for d := range c.scale {
		c.scale[d] = max(c.scale[d], 1)
	}
	flat := make([]float64, len(c.classes)*c.d)
	for i := range c.classes {
		cl := &c.classes[i]
		cl.fsize, flat = flat[:c.d:c.d], flat[c.d:]
		for d, v := range cl.size {
			cl.fsize[d] = float64(v) / c.scale[d]
		}
	}
	for i := range c.kinds {
		if c.kinds[i].fixed {
			c.fixed = append(c.fixed, int32(i))
		} else {
			c.buyable = append(c.buyable, int32(i))
		}
	}
	slices.SortStableFunc(c.buyable, func(a, b int32) int { return cmp.Compare(c.kinds[a].cost, c.kinds[b].cost) })
	c.compareKinds()
}

// compatible appends the classes whose signature is in sigs.
func (c *core) compatible(sigs Bitset, to []int32) []int32 {
	for i := range c.classes {
		if sigs.Has(c.classes[i].sig) {
			to = append(to, int32(i))
		}
	}
	return to
}

// canHold tells whether a bin of type k may hold an item of the class and has room
// for one.
func (c *core) canHold(k *kind, cl *class) bool { return c.takes(k, cl) && fits(cl.size, k.cap) }

// takes tells whether type k is compatible with the class, whatever its size.
func (c *core) takes(k *kind, cl *class) bool { return c.cols[k.col].Has(cl.sig) }

func fits(size, free []int64) bool {
	for d, v := range size {
		if v > free[d] {
			return false
		}
	}
	return true
}

// compareKinds notes in varies of which dimensions kinds have more or less.
func (c *core) compareKinds() {
	c.varies = make([]bool, c.d)
	for _, t := range c.buyable {
		for d, v := range c.kinds[c.buyable[0]].cap {
			c.varies[d] = c.varies[d] || c.kinds[t].cap[d] != v
		}
	}
}

// scaling lists the dimensions of which kinds have more or less.
func (c *core) scaling() []int {
	var out []int
	for d, varies := range c.varies {
		if varies {
			out = append(out, d)
		}
	}
	return out
}

// cheapestFor is what the cheapest kind costs that holds an item of the class,
// or -1.
func (c *core) cheapestFor(cl *class) int64 {
	for _, t := range c.buyable {
		if k := &c.kinds[t]; c.canHold(k, cl) {
			return k.cost
		}
	}
	return -1
}
