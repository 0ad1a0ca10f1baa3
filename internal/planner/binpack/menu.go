package binpack

import "slices"

// fewPairs is how many pairs of a class and a kind the menu of the first packing
// should not exceed, manyPairs that of its improvement.
const (
	fewPairs  = 6_000
	manyPairs = 50_000
)

// spacings are by how much, at most, the cost of a kind may exceed that of one
// that it stands for, from a fine menu to a coarse one.
var spacings = [...]float64{1.1, 1.2, 1.35, 1.5}

// alike is by how much dearer the room in a kind may be than in one that it
// stands for.
const alike = 0.02

// chooseMenu picks the kinds that the prices and the greedy look at. Where
// kinds and classes are many, a kind is left out when another is slightly
// larger at nearly the same price per unit of everything: whoever filled the
// larger one exchanges it for the smaller if that does as well (see shrink).
func (c *core) chooseMenu(pairs int) {
	defer c.listClasses()
	c.menu, c.listed = c.buyable, make([]int32, len(c.kinds))
	for t := range c.listed {
		c.listed[t] = int32(t)
	}
	for _, spacing := range spacings {
		if len(c.menu)*len(c.classes) <= pairs {
			break
		}
		c.thin(spacing)
	}
	c.listCovers()
}

// finer is the same problem with the menu for improving a packing: c itself if
// that is no longer than its own.
func (c *core) finer() *core {
	if len(c.menu) == len(c.buyable) {
		return c
	}
	f := *c
	if f.chooseMenu(manyPairs); len(f.menu) <= len(c.menu) {
		return c
	}
	return &f
}

// listClasses gives the kinds on the menu and the fixed ones their slots, and
// notes in the columns of the former which classes they take.
func (c *core) listClasses() {
	c.slot, c.priced = make([]int32, len(c.kinds)), 0
	for t := range c.slot {
		c.slot[t] = -1
	}
	for _, list := range [2][]int32{c.menu, c.fixed} {
		for _, t := range list {
			c.slot[t] = int32(c.priced)
			c.priced++
		}
	}
	for _, t := range c.menu {
		col := &c.cols[c.kinds[t].col]
		if col.classes == nil {
			col.classes = c.compatible(col.sigs, nil)
		}
	}
}

// thin makes a menu of kinds so far apart, and notes in listed which of them stands
// for each.
func (c *core) thin(spacing float64) {
	scales := c.scaling()
	c.menu = nil
	for _, t := range slices.Backward(c.buyable) {
		if c.listed[t] = c.standIn(t, spacing, scales); c.listed[t] < 0 {
			c.menu = append(c.menu, t)
			c.listed[t] = t
		}
	}
	slices.Reverse(c.menu)
}

// listCovers inverts listed.
func (c *core) listCovers() {
	c.covered, c.covers = make([]int32, len(c.kinds)+1), make([]int32, len(c.buyable)-len(c.menu))
	for _, t := range c.buyable {
		if k := c.listed[t]; k != t {
			c.covered[k+1]++
		}
	}
	for t := range c.kinds {
		c.covered[t+1] += c.covered[t]
	}
	next := slices.Clone(c.covered)
	for _, t := range slices.Backward(c.buyable) {
		if k := c.listed[t]; k != t {
			c.covers[next[k]] = t
			next[k]++
		}
	}
}

// coveredBy lists the other kinds that one on the menu stands for.
func (c *core) coveredBy(t int32) []int32 { return c.covers[c.covered[t]:c.covered[t+1]] }

// standIn returns the cheapest kind on the menu that may stand for t, or -1. The
// menu is ordered by falling cost.
func (c *core) standIn(t int32, spacing float64, scales []int) int32 {
	b := &c.kinds[t]
	if b.max >= 0 {
		return -1
	}
	for n := range c.menu {
		k := c.menu[len(c.menu)-1-n]
		a := &c.kinds[k]
		if float64(a.cost) > float64(b.cost)*spacing {
			break
		}
		if a.max < 0 && asCheap(a, b, scales) && c.standsFor(a, b) {
			return k
		}
	}
	return -1
}

// asCheap tells whether a unit of every scaling dimension costs hardly more in a
// than in b.
func asCheap(a, b *kind, scales []int) bool {
	cost, grown := float64(b.cost), float64(a.cost)/(1+alike)
	for _, d := range scales {
		if float64(a.cap[d])*cost < grown*float64(b.cap[d]) {
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
