package binpack

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// reducer makes a core of a Problem.
type reducer struct {
	p *Problem
	c *reduced.Problem
	// usable are the caller's bin types that are well formed and may be bought.
	usable bitset.Set
	// unplaced is, by the caller's class, how many items no bin can hold.
	unplaced []int
}

// reduce merges what cannot be told apart and drops what cannot be of use. The
// second result is, by the caller's class, how many items no bin can hold.
func reduce(p *Problem) (*reduced.Problem, []int) {
	r := &reducer{p: p, c: &reduced.Problem{Dims: p.Dims}, usable: usableBins(p), unplaced: make([]int, len(p.Classes))}
	sigs := r.mergeClasses()
	for _, s := range p.Shared {
		r.c.Shared = append(r.c.Shared, max(0, s.Left))
	}
	r.buildKinds(sigs)
	r.dropUnplaceable()
	r.c.Finish()
	return r.c, r.unplaced
}

// maxCost keeps sums of costs away from overflow: 2^44 micro-dollars are
// seventeen million dollars an hour.
const maxCost = int64(1) << 44

func usableBins(p *Problem) bitset.Set {
	b := bitset.New(len(p.Bins))
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
			b.Add(i)
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

// buildKinds fills c.types with the bin types worth looking at, and c.cols.
func (r *reducer) buildKinds(sigs []bitset.Set) {
	p, c := r.p, r.c
	colOf := map[string]int{}
	var key []byte
	takes := make([]bitset.Set, len(p.Bins))
	flat := bitset.New(64 * len(p.Bins) * ((len(sigs) + 63) / 64))
	for i := range takes {
		n := len(flat) / len(takes)
		takes[i] = flat[i*n : i*n+n : i*n+n]
	}
	for s, bins := range sigs {
		for i := range bins.All {
			takes[i].Add(s)
		}
	}
	items := 0
	for i := range c.Classes {
		items += c.Classes[i].Count
	}
	all := make([]reduced.BinType, 0, len(p.Bins))
	for i := range p.Bins {
		b := &p.Bins[i]
		if !r.usable.Has(i) || !takes[i].Any() {
			continue
		}
		key = key[:0]
		for _, w := range takes[i] {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
		col, ok := colOf[string(key)]
		if !ok {
			col = len(c.Acceptances)
			colOf[string(key)] = col
			c.Acceptances = append(c.Acceptances, takes[i])
		}
		k := reduced.BinType{Capacity: b.Capacity, Cost: b.Cost, Max: b.Max, Fixed: b.Fixed, From: i, Acceptance: col}
		if b.Fixed {
			k.Cost, k.Max = 0, 1
		}
		if k.Max < 0 || k.Max >= items {
			k.Max = -1
		}
		for s := range p.Shared {
			if u := useOf(&p.Shared[s], i); u > 0 {
				if k.Use == nil {
					k.Use = make([]int64, len(p.Shared))
				}
				k.Use[s] = u
			}
		}
		all = append(all, k)
	}
	c.Types = groupFixed(r.dropDominated(all))
}

// dropDominated removes types that another type can always stand in for: no
// dearer, no smaller, at least as compatible, unlimited, and no hungrier for
// shared limits. Of equals the first stays.
func (r *reducer) dropDominated(all []reduced.BinType) []reduced.BinType {
	c := r.c
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	// A type can be beaten only by one that costs no more and, at the same
	// cost, has at least the same total capacity: those come first.
	total := make([]float64, len(all))
	for i := range all {
		for _, v := range all[i].Capacity {
			total[i] += float64(v)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &all[a], &all[b]
		if x.Cost != y.Cost {
			return cmp.Compare(x.Cost, y.Cost)
		}
		if total[a] != total[b] {
			return cmp.Compare(total[b], total[a])
		}
		if x.Max != y.Max {
			return cmp.Compare(x.Max, y.Max) // unlimited first
		}
		return a - b
	})
	keep := bitset.New(len(all))
	var front frontier
	for _, i := range order {
		k := &all[i]
		if !k.Fixed && front.any(firstOf(k), func(n int) bool { return beats(c, &all[n], k) }) {
			continue
		}
		keep.Add(i)
		if !k.Fixed && k.Max < 0 {
			front.add(firstOf(k), i)
		}
	}
	out, froms := all[:0], make([]int, keep.Count())
	for i := range all {
		if keep.Has(i) {
			n := len(out)
			froms[n] = all[i].From
			all[i].Origins = froms[n : n+1 : n+1]
			out = append(out, all[i])
		}
	}
	return out
}

// firstOf is what a type has of the first dimension.
func firstOf(k *reduced.BinType) int64 {
	if len(k.Capacity) == 0 {
		return 0
	}
	return k.Capacity[0]
}

// frontier lists types by what they have of the first dimension, the most last,
// so that only those with enough of it are looked at. Larger types mostly come
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

// any reports whether one of the types with at least so much of the first
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
func beats(c *reduced.Problem, a, b *reduced.BinType) bool {
	return a.Cost <= b.Cost && c.StandsFor(a, b)
}

// groupFixed makes one type with a Max of fixed bins that are alike.
func groupFixed(in []reduced.BinType) []reduced.BinType {
	if !slices.ContainsFunc(in, func(k reduced.BinType) bool { return k.Fixed }) {
		return in
	}
	var out []reduced.BinType
	at := map[string]int{}
	var key []byte
	for _, k := range in {
		if !k.Fixed {
			out = append(out, k)
			continue
		}
		key = binary.LittleEndian.AppendUint32(key[:0], uint32(k.Acceptance))
		for _, v := range k.Capacity {
			key = binary.LittleEndian.AppendUint64(key, uint64(v))
		}
		for _, u := range k.Use {
			key = binary.LittleEndian.AppendUint64(key, uint64(u))
		}
		if i, ok := at[string(key)]; ok {
			out[i].Origins = append(out[i].Origins, k.Origins[0])
			out[i].Max++
			continue
		}
		at[string(key)] = len(out)
		if k.Max < 0 { // a single item: still one bin only
			k.Max = 1
		}
		out = append(out, k)
	}
	return out
}

// dropUnplaceable moves classes that no type can hold to unplaced.
func (r *reducer) dropUnplaceable() {
	c := r.c
	c.Classes = slices.DeleteFunc(c.Classes, func(cl reduced.Class) bool {
		for i := range c.Types {
			if k := &c.Types[i]; c.CanHold(k, &cl) {
				return false
			}
		}
		for _, o := range cl.Origins {
			r.unplaced[o] = r.p.Classes[o].Count
		}
		return true
	})
}
