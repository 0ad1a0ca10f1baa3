package reduced

import (
	"slices"
)

// Pattern is a filled bin, bought a number of times.
type Pattern struct {
	Type  int32
	Times int
	Items []Content
}

// MostPerBin keeps counts within a bin in 32 bits.
const MostPerBin = 1 << 30

// Content is a number of items of one class in a bin.
type Content struct{ Class, Count int32 }

// Packing is a packing in the making: what is bought, what is left to place,
// and what may still be bought.
type Packing struct {
	Problem   *Problem
	Patterns  []Pattern
	Remaining []int // by class, items not placed
	Limits    *Limits
	Cost      int64
}

// NewPacking is the empty packing: no bin is bought, every item is left.
func (c *Problem) NewPacking() *Packing {
	p := &Packing{Problem: c, Remaining: make([]int, len(c.Classes)), Limits: c.NewLimits()}
	for i := range c.Classes {
		p.Remaining[i] = c.Classes[i].Count
	}
	return p
}

// CopyFrom makes p a copy of o that shares only the contents of patterns, which
// nothing changes once they are in a packing.
func (p *Packing) CopyFrom(o *Packing) {
	p.Patterns = append(p.Patterns[:0], o.Patterns...)
	p.Remaining = append(p.Remaining[:0], o.Remaining...)
	p.Limits.copyFrom(o.Limits)
	p.Cost = o.Cost
}

// Buy adds a bin of type t with the items, which are ordered by class, times times.
func (p *Packing) Buy(t int32, items []Content, times int) {
	for _, it := range items {
		p.Remaining[it.Class] -= int(it.Count) * times
	}
	p.Limits.Open(t, times)
	p.Cost += p.Problem.Types[t].Cost * int64(times)
	p.Patterns = append(p.Patterns, Pattern{t, times, items})
}

// Repeats is how often a bin of type t with the items can be bought with what is left.
func (p *Packing) Repeats(t int32, items []Content) int {
	n := p.Limits.Room(t)
	for _, it := range items {
		n = min(n, p.Remaining[it.Class]/int(it.Count))
	}
	return n
}

// Placed is, by class, how many items are packed.
func (p *Packing) Placed() []int {
	n := make([]int, len(p.Remaining))
	for i := range n {
		n[i] = p.Problem.Classes[i].Count - p.Remaining[i]
	}
	return n
}

// Left is how many items are not placed.
func (p *Packing) Left() int {
	n := 0
	for _, r := range p.Remaining {
		n += r
	}
	return n
}

// BetterThan compares by the items left out, the highest priority first, and
// then by cost.
func (p *Packing) BetterThan(o *Packing) bool {
	if byPriority := p.Problem.compareLeft(p.Remaining, o.Remaining); byPriority != 0 {
		return byPriority < 0
	}
	return p.Cost < o.Cost
}

// Remove takes bins of pattern k out of p.
func (p *Packing) Remove(k, times int) {
	pt := &p.Patterns[k]
	for _, it := range pt.Items {
		p.Remaining[it.Class] += int(it.Count) * times
	}
	p.Limits.Open(pt.Type, -times)
	p.Cost -= p.Problem.Types[pt.Type].Cost * int64(times)
	if pt.Times -= times; pt.Times == 0 {
		p.Patterns = slices.Delete(p.Patterns, k, k+1)
	}
}

// Merge makes p what two workers have together.
func (p *Packing) Merge(x, y *Packing) {
	p.Patterns = append(append(p.Patterns[:0], x.Patterns...), y.Patterns...)
	p.Cost = x.Cost + y.Cost
}
