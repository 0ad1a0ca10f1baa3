package localsearch

import (
	"math"
	"math/bits"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// pool holds the items of the bins that a trial has taken apart.
type pool struct {
	c *reduced.Problem
	// rem is, by class, how many items are in the pool.
	rem []int
	// classes are those which had items in the pool when the trial began, by falling
	// value once sort has been called.
	classes []int32
	// byRank are all classes by falling value, rank the place of each in it.
	byRank, rank []int32
	// load is the size of all items together, by dimension, as weigh left it.
	load []int64
	some []int32 // scratch
}

func newPool(c *reduced.Problem, value []float64) pool {
	p := pool{c: c, rem: make([]int, len(c.Classes)), load: make([]int64, c.Dims), rank: make([]int32, len(c.Classes))}
	for i := range c.Classes {
		p.byRank = append(p.byRank, int32(i))
	}
	reduced.SortBy(p.byRank, func(i int32) float64 { return -value[i] })
	for k, i := range p.byRank {
		p.rank[i] = int32(k)
	}
	return p
}

// clear empties the pool.
func (p *pool) clear() {
	for _, i := range p.classes {
		p.rem[i] = 0
	}
	p.classes = p.classes[:0]
}

// add adds the items to the pool.
func (p *pool) add(items []reduced.Content) {
	for _, it := range items {
		if p.rem[it.Class] == 0 {
			p.classes = append(p.classes, it.Class)
		}
		p.rem[it.Class] += int(it.Count)
	}
}

// sort orders classes by falling value.
func (p *pool) sort() {
	for k, i := range p.classes {
		p.classes[k] = p.rank[i]
	}
	slices.Sort(p.classes)
	for k, i := range p.classes {
		p.classes[k] = p.byRank[i]
	}
}

// weigh finds the load of what is in the pool, and returns its worth and whether
// there is nothing.
func (p *pool) weigh(value []float64) (worth float64, empty bool) {
	clear(p.load)
	empty = true
	for _, i := range p.classes {
		if n := p.rem[i]; n > 0 {
			empty = false
			worth += value[i] * float64(n)
			for d, v := range p.c.Classes[i].Size {
				p.load[d] = addTimes(p.load[d], v, n)
			}
		}
	}
	return worth, empty
}

// addTimes is sum + v*n, at most the largest number there is; none is negative.
func addTimes(sum, v int64, n int) int64 {
	high, low := bits.Mul64(uint64(v), uint64(n))
	if high > 0 || low > uint64(math.MaxInt64-sum) {
		return math.MaxInt64
	}
	return sum + int64(low)
}

// putAll moves all items into the bin, which must have room for them.
func (p *pool) putAll(b *construct.OpenBin) {
	for _, i := range p.classes {
		if p.rem[i] > 0 {
			b.Put(i, p.rem[i])
		}
	}
}

// admitted is the pooled classes that type t may hold.
func (p *pool) admitted(t int32) []int32 {
	sigs := p.c.Acceptances[p.c.Types[t].Acceptance]
	for _, i := range p.classes {
		if !sigs.Has(p.c.Classes[i].Signature) {
			return p.filtered(sigs)
		}
	}
	return p.classes
}

// filtered is the pooled classes whose signature is in sigs.
func (p *pool) filtered(sigs bitset.Set) []int32 {
	p.some = p.some[:0]
	for _, i := range p.classes {
		if sigs.Has(p.c.Classes[i].Signature) {
			p.some = append(p.some, i)
		}
	}
	return p.some
}

// fitsOne tells whether bins of type t may hold all of the pool in one, by every
// rule but the load. It uses the bin as scratch.
func (p *pool) fitsOne(t int32, b *construct.OpenBin) bool {
	sigs := p.c.Acceptances[p.c.Types[t].Acceptance]
	b.Begin(t)
	for _, i := range p.classes {
		cl := &p.c.Classes[i]
		n := p.rem[i]
		if n == 0 {
			continue
		}
		if !sigs.Has(cl.Signature) || n > cl.PerBin || n > reduced.MostPerBin || b.Blocked(i) {
			return false
		}
		b.Claim(i)
	}
	return true
}
