package reduced

import (
	"cmp"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// BinType is a bin type after reduction.
type BinType struct {
	Capacity []int64
	Cost     int64
	Max      int // -1 is no limit
	Fixed    bool
	From     int // the caller's bin type
	// orig are the caller's bin types that this one stands for. More than one
	// only for fixed bins that are alike.
	Origins []int
	Use     []int64 // by shared limit; nil when it uses none
	// col names the set of compatible signatures, interned in core.cols.
	Acceptance int
}

// Class is a counted item after reduction.
type Class struct {
	Size      []int64
	Scaled    []float64 // size in units of core.scale
	Count     int
	PerBin    int // math.MaxInt when there is no cap
	Priority  int32
	Conflicts []int32 // dense conflict ids that at least two classes share
	Signature int     // interned set of compatible bin types
	// orig are the caller's classes merged into this one.
	Origins []int
}

// Problem is the reduced problem on which everything else works.
type Problem struct {
	Dims        int
	Scale       []float64
	Classes     []Class
	Types       []BinType
	Acceptances []bitset.Set
	Shared      []int64 // what is left of every shared limit
	ConflictIDs int
	Signatures  int
	Buyable     []int32 // types that are not fixed, cheapest first
	Fixed       []int32
	// varies says, by dimension, whether buyable types have more or less of it.
	Varies []bool
}

// StandsFor tells whether a holds whatever b holds and takes no more of limits.
func (c *Problem) StandsFor(a, b *BinType) bool {
	if a.Acceptance != b.Acceptance && !c.Acceptances[b.Acceptance].SubsetOf(c.Acceptances[a.Acceptance]) {
		return false
	}
	for s, u := range a.Use {
		if u > 0 && (b.Use == nil || b.Use[s] < u) {
			return false
		}
	}
	return Fits(b.Capacity, a.Capacity)
}

// Finish derives what the search looks up all the time.
func (c *Problem) Finish() {
	c.Scale = make([]float64, c.Dims)
	for i := range c.Types {
		for d, v := range c.Types[i].Capacity {
			c.Scale[d] = max(c.Scale[d], float64(v))
		}
	}
	for d := range c.Scale {
		c.Scale[d] = max(c.Scale[d], 1)
	}
	flat := make([]float64, len(c.Classes)*c.Dims)
	for i := range c.Classes {
		cl := &c.Classes[i]
		cl.Scaled, flat = flat[:c.Dims:c.Dims], flat[c.Dims:]
		for d, v := range cl.Size {
			cl.Scaled[d] = float64(v) / c.Scale[d]
		}
	}
	for i := range c.Types {
		if c.Types[i].Fixed {
			c.Fixed = append(c.Fixed, int32(i))
		} else {
			c.Buyable = append(c.Buyable, int32(i))
		}
	}
	slices.SortStableFunc(c.Buyable, func(a, b int32) int { return cmp.Compare(c.Types[a].Cost, c.Types[b].Cost) })
	c.compareKinds()
}

// Compatible appends the classes whose signature is in sigs.
func (c *Problem) Compatible(sigs bitset.Set, to []int32) []int32 {
	for i := range c.Classes {
		if sigs.Has(c.Classes[i].Signature) {
			to = append(to, int32(i))
		}
	}
	return to
}

// CanHold tells whether a bin of type k may hold an item of the class and has room
// for one.
func (c *Problem) CanHold(k *BinType, cl *Class) bool {
	return c.Takes(k, cl) && Fits(cl.Size, k.Capacity)
}

// Takes tells whether type k is compatible with the class, whatever its size.
func (c *Problem) Takes(k *BinType, cl *Class) bool {
	return c.Acceptances[k.Acceptance].Has(cl.Signature)
}

// Fits tells whether a size is within what is free, in every dimension.
func Fits(size, free []int64) bool {
	for d, v := range size {
		if v > free[d] {
			return false
		}
	}
	return true
}

// compareKinds notes in varies of which dimensions types have more or less.
func (c *Problem) compareKinds() {
	c.Varies = make([]bool, c.Dims)
	for _, t := range c.Buyable {
		for d, v := range c.Types[c.Buyable[0]].Capacity {
			c.Varies[d] = c.Varies[d] || c.Types[t].Capacity[d] != v
		}
	}
}

// Scaling lists the dimensions of which types have more or less.
func (c *Problem) Scaling() []int {
	var out []int
	for d, varies := range c.Varies {
		if varies {
			out = append(out, d)
		}
	}
	return out
}

// CheapestFor is what the cheapest type costs that holds an item of the class,
// or -1.
func (c *Problem) CheapestFor(cl *Class) int64 {
	for _, t := range c.Buyable {
		if k := &c.Types[t]; c.CanHold(k, cl) {
			return k.Cost
		}
	}
	return -1
}

// Cheapest returns the cheapest type that may hold the contents of a bin of
// type t in its place, or t.
func (c *Problem) Cheapest(t int32, items []Content, lim *Limits, load []int64) int32 {
	clear(load)
	for _, it := range items {
		for d, v := range c.Classes[it.Class].Size {
			load[d] += v * int64(it.Count)
		}
	}
	for _, u := range c.Buyable {
		k := &c.Types[u]
		if k.Cost >= c.Types[t].Cost {
			break
		}
		if Fits(load, k.Capacity) && c.Holds(u, items) && lim.Room(u) > 0 {
			return u
		}
	}
	return t
}

// Holds tells whether type t is compatible with all the items.
func (c *Problem) Holds(t int32, items []Content) bool {
	sigs := c.Acceptances[c.Types[t].Acceptance]
	for _, it := range items {
		if !sigs.Has(c.Classes[it.Class].Signature) {
			return false
		}
	}
	return true
}

func (c *Problem) compareLeft(a, b []int) int {
	top := int64(math.MaxInt64)
	for {
		// The next priority below top at which the two differ, if any.
		next, diff := int64(math.MinInt64), 0
		for i := range a {
			if pr := int64(c.Classes[i].Priority); a[i] != b[i] && pr < top {
				switch {
				case pr > next:
					next, diff = pr, a[i]-b[i]
				case pr == next:
					diff += a[i] - b[i]
				}
			}
		}
		if next == math.MinInt64 || diff != 0 {
			return diff
		}
		top = next
	}
}

// Unlimited tells whether everything may be bought as often as one likes: then bins
// of different workers have nothing to do with each other.
func (c *Problem) Unlimited() bool {
	if len(c.Shared) > 0 {
		return false
	}
	for t := range c.Types {
		if c.Types[t].Max >= 0 {
			return false
		}
	}
	return true
}

// MostOf is how many items of a class a bin of such a capacity holds.
func MostOf(cl *Class, capacity []int64) int {
	most := min(cl.Count, cl.PerBin, MostPerBin)
	for d, v := range cl.Size {
		if v > 0 {
			most = min(most, int(min(capacity[d]/v, MostPerBin)))
		}
	}
	return most
}
