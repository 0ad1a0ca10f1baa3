package binpack

import "slices"

// openBin is one bin while it is filled, with the capacity that is left in it.
//
// Invariants: free[d] = capacity[d] - Σ got[i]·size[i,d] and free[d] >= 0 outside
// lend; got[i] > 0 exactly for the classes in touched; owner[id] names the one
// class in the bin that carries conflict id.
type openBin struct {
	c *core
	// free is the capacity left, by dimension, in the caller's units.
	free []int64
	// got is, by class, how many of its items are in the bin.
	got []int32
	// touched lists the classes in the bin, in the order in which they came.
	touched []int32
	// owner is, by conflict id, 1 + the class in the bin that carries the id, or 0.
	owner []int32
}

func newOpenBin(c *core) openBin {
	n := len(c.classes)
	return openBin{c: c, free: make([]int64, c.d), got: make([]int32, n), touched: make([]int32, 0, n), owner: make([]int32, c.nconf)}
}

// begin empties the bin and makes it one of type t.
func (b *openBin) begin(t int32) {
	for _, i := range b.touched {
		b.got[i] = 0
		for _, id := range b.c.classes[i].conf {
			b.owner[id] = 0
		}
	}
	b.touched = b.touched[:0]
	copy(b.free, b.c.kinds[t].cap)
}

// put adds n items of class i. They must fit: see room.
func (b *openBin) put(i int32, n int) {
	cl := &b.c.classes[i]
	if b.got[i] == 0 {
		b.touched = append(b.touched, i)
		for _, id := range cl.conf {
			b.owner[id] = i + 1
		}
	}
	b.got[i] += int32(n)
	for d, v := range cl.size {
		b.free[d] -= v * int64(n)
	}
}

// putAll adds all the items.
func (b *openBin) putAll(items []content) {
	for _, it := range items {
		b.put(it.class, int(it.n))
	}
}

// take removes n items of class i, of which the bin has as many.
func (b *openBin) take(i int32, n int) {
	cl := &b.c.classes[i]
	b.got[i] -= int32(n)
	for d, v := range cl.size {
		b.free[d] += v * int64(n)
	}
	if b.got[i] > 0 {
		return
	}
	for _, id := range cl.conf {
		b.owner[id] = 0
	}
	k := slices.Index(b.touched, i)
	b.touched = slices.Delete(b.touched, k, k+1)
}

// claim notes that class i is in the bin without taking capacity for it, so that
// blocked answers for the classes that come after it. begin forgets it.
func (b *openBin) claim(i int32) {
	conflicts := b.c.classes[i].conf
	for _, id := range conflicts {
		b.owner[id] = i + 1
	}
	if len(conflicts) > 0 {
		b.touched = append(b.touched, i)
	}
}

// lend makes the room of n items of class i free without taking them out; a
// negative n takes the room back.
func (b *openBin) lend(i int32, n int) {
	for d, v := range b.c.classes[i].size {
		b.free[d] += v * int64(n)
	}
}

// blocked tells whether a conflict keeps class i out of the bin.
func (b *openBin) blocked(i int32) bool {
	for _, id := range b.c.classes[i].conf {
		if o := b.owner[id]; o != 0 && o != i+1 {
			return true
		}
	}
	return false
}

// blockedBut tells whether a conflict would keep class i out of the bin if one
// item of class but left it.
func (b *openBin) blockedBut(i, but int32) bool {
	for _, id := range b.c.classes[i].conf {
		o := b.owner[id]
		if o != 0 && o != i+1 && !(o == but+1 && b.got[but] == 1) {
			return true
		}
	}
	return false
}

// admits tells whether one more item of class i fits in the bin by every rule.
func (b *openBin) admits(i int32) bool {
	cl := &b.c.classes[i]
	return fits(cl.size, b.free) && int(b.got[i]) < cl.perBin && (len(cl.conf) == 0 || !b.blocked(i))
}

// room is how many of at most n items of class i still fit in the bin.
func (b *openBin) room(i int32, n int) int {
	cl := &b.c.classes[i]
	n = min(n, cl.perBin-int(b.got[i]), mostPerBin-int(b.got[i]))
	for d, v := range cl.size {
		if v > b.free[d] {
			return 0
		}
		if v > 0 {
			if k := b.free[d] / v; k < int64(n) {
				n = int(k)
			}
		}
	}
	if n > 0 && len(cl.conf) > 0 && b.blocked(i) {
		return 0
	}
	return max(0, n)
}

// worthOf is the value of what is in the bin; value is by class, in micro-dollars
// an hour for one item.
func (b *openBin) worthOf(value []float64) float64 {
	v := 0.0
	for _, i := range b.touched {
		v += value[i] * float64(b.got[i])
	}
	return v
}

// appendContents appends what is in the bin, in the order in which it came.
func (b *openBin) appendContents(to []content) []content {
	for _, i := range b.touched {
		to = append(to, content{i, b.got[i]})
	}
	return to
}

// contents is what is in the bin, ordered by class, in storage of its own.
func (b *openBin) contents() []content {
	items := b.appendContents(make([]content, 0, len(b.touched)))
	slices.SortFunc(items, func(x, y content) int { return int(x.class) - int(y.class) })
	return items
}
