package construct

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// OpenBin is one bin while it is filled, with the capacity that is left in it.
//
// Invariants: free[d] = capacity[d] - Σ got[i]·size[i,d] and free[d] >= 0 outside
// lend; got[i] > 0 exactly for the classes in touched; owner[id] names the one
// class in the bin that carries conflict id.
type OpenBin struct {
	c *reduced.Problem
	// free is the capacity left, by dimension, in the caller's units.
	free []int64
	// got is, by class, how many of its items are in the bin.
	got []int32
	// touched lists the classes in the bin, in the order in which they came.
	Touched []int32
	// owner is, by conflict id, 1 + the class in the bin that carries the id, or 0.
	owner []int32
}

// NewOpenBin is an empty bin without a type: see begin.
func NewOpenBin(c *reduced.Problem) OpenBin {
	n := len(c.Classes)
	return OpenBin{c: c, free: make([]int64, c.Dims), got: make([]int32, n), Touched: make([]int32, 0, n), owner: make([]int32, c.ConflictIDs)}
}

// Begin empties the bin and makes it one of type t.
func (b *OpenBin) Begin(t int32) {
	for _, i := range b.Touched {
		b.got[i] = 0
		for _, id := range b.c.Classes[i].Conflicts {
			b.owner[id] = 0
		}
	}
	b.Touched = b.Touched[:0]
	copy(b.free, b.c.Types[t].Capacity)
}

// Put adds n items of class i. They must fit: see room.
func (b *OpenBin) Put(i int32, n int) {
	cl := &b.c.Classes[i]
	if b.got[i] == 0 {
		b.Touched = append(b.Touched, i)
		for _, id := range cl.Conflicts {
			b.owner[id] = i + 1
		}
	}
	b.got[i] += int32(n)
	for d, v := range cl.Size {
		b.free[d] -= v * int64(n)
	}
}

// PutAll adds all the items.
func (b *OpenBin) PutAll(items []reduced.Content) {
	for _, it := range items {
		b.Put(it.Class, int(it.Count))
	}
}

// take removes n items of class i, of which the bin has as many.
func (b *OpenBin) take(i int32, n int) {
	cl := &b.c.Classes[i]
	b.got[i] -= int32(n)
	for d, v := range cl.Size {
		b.free[d] += v * int64(n)
	}
	if b.got[i] > 0 {
		return
	}
	for _, id := range cl.Conflicts {
		b.owner[id] = 0
	}
	k := slices.Index(b.Touched, i)
	b.Touched = slices.Delete(b.Touched, k, k+1)
}

// Claim notes that class i is in the bin without taking capacity for it, so that
// blocked answers for the classes that come after it. begin forgets it.
func (b *OpenBin) Claim(i int32) {
	conflicts := b.c.Classes[i].Conflicts
	for _, id := range conflicts {
		b.owner[id] = i + 1
	}
	if len(conflicts) > 0 {
		b.Touched = append(b.Touched, i)
	}
}

// lend makes the room of n items of class i free without taking them out; a
// negative n takes the room back.
func (b *OpenBin) lend(i int32, n int) {
	for d, v := range b.c.Classes[i].Size {
		b.free[d] += v * int64(n)
	}
}

// Blocked tells whether a conflict keeps class i out of the bin.
func (b *OpenBin) Blocked(i int32) bool {
	for _, id := range b.c.Classes[i].Conflicts {
		if o := b.owner[id]; o != 0 && o != i+1 {
			return true
		}
	}
	return false
}

// blockedBut tells whether a conflict would keep class i out of the bin if one
// item of class but left it.
func (b *OpenBin) blockedBut(i, but int32) bool {
	for _, id := range b.c.Classes[i].Conflicts {
		o := b.owner[id]
		if o != 0 && o != i+1 && !(o == but+1 && b.got[but] == 1) {
			return true
		}
	}
	return false
}

// admits tells whether one more item of class i fits in the bin by every rule.
func (b *OpenBin) admits(i int32) bool {
	cl := &b.c.Classes[i]
	return reduced.Fits(cl.Size, b.free) && int(b.got[i]) < cl.PerBin && (len(cl.Conflicts) == 0 || !b.Blocked(i))
}

// room is how many of at most n items of class i still fit in the bin.
func (b *OpenBin) room(i int32, n int) int {
	cl := &b.c.Classes[i]
	n = min(n, cl.PerBin-int(b.got[i]), reduced.MostPerBin-int(b.got[i]))
	for d, v := range cl.Size {
		if v > b.free[d] {
			return 0
		}
		if v > 0 {
			if k := b.free[d] / v; k < int64(n) {
				n = int(k)
			}
		}
	}
	if n > 0 && len(cl.Conflicts) > 0 && b.Blocked(i) {
		return 0
	}
	return max(0, n)
}

// WorthOf is the value of what is in the bin; value is by class, in micro-dollars
// an hour for one item.
func (b *OpenBin) WorthOf(value []float64) float64 {
	v := 0.0
	for _, i := range b.Touched {
		v += value[i] * float64(b.got[i])
	}
	return v
}

// AppendContents appends what is in the bin, in the order in which it came.
func (b *OpenBin) AppendContents(to []reduced.Content) []reduced.Content {
	for _, i := range b.Touched {
		to = append(to, reduced.Content{Class: i, Count: b.got[i]})
	}
	return to
}

// Contents is what is in the bin, ordered by class, in storage of its own.
func (b *OpenBin) Contents() []reduced.Content {
	items := b.AppendContents(make([]reduced.Content, 0, len(b.Touched)))
	slices.SortFunc(items, func(x, y reduced.Content) int { return int(x.Class) - int(y.Class) })
	return items
}
