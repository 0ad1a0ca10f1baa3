package binpack

import "slices"

// menu is the list of bin types that the prices and the first packing look at.
//
// Where types and classes are many, a type is left out when another is slightly
// larger at nearly the same price per unit of everything: a bin of the larger
// type is exchanged for one of the smaller if that does as well. Each type on the
// list stands for those that it leaves out, and bounds count them too.
type menu struct {
	c *core
	// kinds are those of core.buyable that are on the list, the cheapest first.
	kinds []int32
	// covered[covers[t]:covers[t+1]] are the types that t stands for but itself.
	covers, covered []int32
	// listed is, by type, the type on the list that stands for it, or the type.
	listed []int32
	// classes lists, by acceptance, the classes it admits; nil where no type on the
	// list has it.
	classes [][]int32
	// slot is, by type, where its prices are: those of the list in its order, then
	// those of fixed bins; -1 for types that have none. priced is how many have one.
	slot   []int32
	priced int
}

// fewPairs is how many pairs of a class and a type the list for the first packing
// should not exceed, manyPairs that for its improvement.
const (
	fewPairs  = 6_000
	manyPairs = 50_000
)

// spacings are by how much, at most, the cost of a type may exceed that of one
// that it stands for, from a long list to a short one.
var spacings = [...]float64{1.1, 1.2, 1.35, 1.5}

// alike is by how much dearer the room in a type may be than in one that it
// stands for.
const alike = 0.02

// newMenu lists types until there are no more than so many pairs of a class and
// a type, if the widest spacing suffices for that.
func newMenu(c *core, pairs int) *menu {
	m := &menu{c: c, kinds: c.buyable, listed: make([]int32, len(c.kinds))}
	for t := range m.listed {
		m.listed[t] = int32(t)
	}
	for _, spacing := range spacings {
		if len(m.kinds)*len(c.classes) <= pairs {
			break
		}
		m.thin(spacing)
	}
	m.listCovers()
	m.listClasses()
	return m
}

// finer is the list for improving a packing: m itself if that is no longer than
// its own.
func (m *menu) finer() *menu {
	if m.whole() {
		return m
	}
	f := newMenu(m.c, manyPairs)
	if len(f.kinds) <= len(m.kinds) {
		return m
	}
	return f
}

// whole tells whether every type that may be bought is on the list.
func (m *menu) whole() bool { return len(m.kinds) == len(m.c.buyable) }

// at is where the prices of a type's dimensions begin; slot[t] must not be -1.
func (m *menu) at(t int32) int { return int(m.slot[t]) * m.c.d }

// coveredBy lists the other types that one on the list stands for.
func (m *menu) coveredBy(t int32) []int32 { return m.covered[m.covers[t]:m.covers[t+1]] }

// admitted lists the classes that type t, which is on the list, admits.
func (m *menu) admitted(t int32) []int32 { return m.classes[m.c.kinds[t].col] }

// listClasses gives the types on the list and the fixed ones their slots, and
// lists which classes the former admit.
func (m *menu) listClasses() {
	c := m.c
	m.slot, m.classes = make([]int32, len(c.kinds)), make([][]int32, len(c.cols))
	for t := range m.slot {
		m.slot[t] = -1
	}
	for _, list := range [2][]int32{m.kinds, c.fixed} {
		for _, t := range list {
			m.slot[t] = int32(m.priced)
			m.priced++
		}
	}
	for _, t := range m.kinds {
		if col := c.kinds[t].col; m.classes[col] == nil {
			m.classes[col] = c.compatible(c.cols[col], nil)
		}
	}
}

// thin makes a list of types so far apart, and notes in listed which of them stands
// for each.
func (m *menu) thin(spacing float64) {
	scales := m.c.scaling()
	m.kinds = nil
	for _, t := range slices.Backward(m.c.buyable) {
		if m.listed[t] = m.standIn(t, spacing, scales); m.listed[t] < 0 {
			m.kinds = append(m.kinds, t)
			m.listed[t] = t
		}
	}
	slices.Reverse(m.kinds)
}

// listCovers inverts listed.
func (m *menu) listCovers() {
	c := m.c
	m.covers, m.covered = make([]int32, len(c.kinds)+1), make([]int32, len(c.buyable)-len(m.kinds))
	for _, t := range c.buyable {
		if k := m.listed[t]; k != t {
			m.covers[k+1]++
		}
	}
	for t := range c.kinds {
		m.covers[t+1] += m.covers[t]
	}
	next := slices.Clone(m.covers)
	for _, t := range slices.Backward(c.buyable) {
		if k := m.listed[t]; k != t {
			m.covered[next[k]] = t
			next[k]++
		}
	}
}

// standIn returns the cheapest type on the list that may stand for t, or -1. The
// list, which thin is making, is ordered by falling cost.
func (m *menu) standIn(t int32, spacing float64, scales []int) int32 {
	c := m.c
	b := &c.kinds[t]
	if b.max >= 0 {
		return -1
	}
	for n := range m.kinds {
		k := m.kinds[len(m.kinds)-1-n]
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
