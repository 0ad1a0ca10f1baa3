package reduced

import "slices"

// Shortlist is the list of bin types that the prices and the first packing look at.
//
// Where types and classes are many, a type is left out when another is slightly
// larger at nearly the same price per unit of everything: a bin of the larger
// type is exchanged for one of the smaller if that does as well. Each type on the
// list stands for those that it leaves out, and bounds count them too.
type Shortlist struct {
	Problem *Problem
	// types are those of core.buyable that are on the list, the cheapest first.
	Types []int32
	// covered[covers[t]:covers[t+1]] are the types that t stands for but itself.
	covers, covered []int32
	// listed is, by type, the type on the list that stands for it, or the type.
	StandIn []int32
	// classes lists, by acceptance, the classes it admits; nil where no type on the
	// list has it.
	Classes [][]int32
	// slot is, by type, where its prices are: those of the list in its order, then
	// those of fixed bins; -1 for types that have none. priced is how many have one.
	Slot   []int32
	Priced int
}

// fewPairs is how many pairs of a class and a type the list for the first packing
// should not exceed, manyPairs that for its improvement.
const (
	FewPairs  = 6_000
	manyPairs = 50_000
)

// spacings are by how much, at most, the cost of a type may exceed that of one
// that it stands for, from a long list to a short one.
var spacings = [...]float64{1.1, 1.2, 1.35, 1.5}

// alike is by how much dearer the room in a type may be than in one that it
// stands for.
const alike = 0.02

// NewShortlist lists types until there are no more than so many pairs of a class and
// a type, if the widest spacing suffices for that.
func NewShortlist(c *Problem, pairs int) *Shortlist {
	m := &Shortlist{Problem: c, Types: c.Buyable, StandIn: make([]int32, len(c.Types))}
	for t := range m.StandIn {
		m.StandIn[t] = int32(t)
	}
	for _, spacing := range spacings {
		if len(m.Types)*len(c.Classes) <= pairs {
			break
		}
		m.thin(spacing)
	}
	m.listCovers()
	m.listClasses()
	return m
}

// Finer is the list for improving a packing: m itself if that is no longer than
// its own.
func (m *Shortlist) Finer() *Shortlist {
	if m.Whole() {
		return m
	}
	f := NewShortlist(m.Problem, manyPairs)
	if len(f.Types) <= len(m.Types) {
		return m
	}
	return f
}

// Whole tells whether every type that may be bought is on the list.
func (m *Shortlist) Whole() bool { return len(m.Types) == len(m.Problem.Buyable) }

// At is where the prices of a type's dimensions begin; slot[t] must not be -1.
func (m *Shortlist) At(t int32) int { return int(m.Slot[t]) * m.Problem.Dims }

// CoveredBy lists the other types that one on the list stands for.
func (m *Shortlist) CoveredBy(t int32) []int32 { return m.covered[m.covers[t]:m.covers[t+1]] }

// Admitted lists the classes that type t, which is on the list, admits.
func (m *Shortlist) Admitted(t int32) []int32 { return m.Classes[m.Problem.Types[t].Acceptance] }

// listClasses gives the types on the list and the fixed ones their slots, and
// lists which classes the former admit.
func (m *Shortlist) listClasses() {
	c := m.Problem
	m.Slot, m.Classes = make([]int32, len(c.Types)), make([][]int32, len(c.Acceptances))
	for t := range m.Slot {
		m.Slot[t] = -1
	}
	for _, list := range [2][]int32{m.Types, c.Fixed} {
		for _, t := range list {
			m.Slot[t] = int32(m.Priced)
			m.Priced++
		}
	}
	for _, t := range m.Types {
		if col := c.Types[t].Acceptance; m.Classes[col] == nil {
			m.Classes[col] = c.Compatible(c.Acceptances[col], nil)
		}
	}
}

// thin makes a list of types so far apart, and notes in listed which of them stands
// for each.
func (m *Shortlist) thin(spacing float64) {
	scales := m.Problem.Scaling()
	m.Types = nil
	for _, t := range slices.Backward(m.Problem.Buyable) {
		if m.StandIn[t] = m.findStandIn(t, spacing, scales); m.StandIn[t] < 0 {
			m.Types = append(m.Types, t)
			m.StandIn[t] = t
		}
	}
	slices.Reverse(m.Types)
}

// listCovers inverts listed.
func (m *Shortlist) listCovers() {
	c := m.Problem
	m.covers, m.covered = make([]int32, len(c.Types)+1), make([]int32, len(c.Buyable)-len(m.Types))
	for _, t := range c.Buyable {
		if k := m.StandIn[t]; k != t {
			m.covers[k+1]++
		}
	}
	for t := range c.Types {
		m.covers[t+1] += m.covers[t]
	}
	next := slices.Clone(m.covers)
	for _, t := range slices.Backward(c.Buyable) {
		if k := m.StandIn[t]; k != t {
			m.covered[next[k]] = t
			next[k]++
		}
	}
}

// findStandIn returns the cheapest type on the list that may stand for t, or -1. The
// list, which thin is making, is ordered by falling cost.
func (m *Shortlist) findStandIn(t int32, spacing float64, scales []int) int32 {
	c := m.Problem
	b := &c.Types[t]
	if b.Max >= 0 {
		return -1
	}
	for n := range m.Types {
		k := m.Types[len(m.Types)-1-n]
		a := &c.Types[k]
		if float64(a.Cost) > float64(b.Cost)*spacing {
			break
		}
		if a.Max < 0 && asCheap(a, b, scales) && c.StandsFor(a, b) {
			return k
		}
	}
	return -1
}

// asCheap tells whether a unit of every scaling dimension costs hardly more in a
// than in b.
func asCheap(a, b *BinType, scales []int) bool {
	cost, grown := float64(b.Cost), float64(a.Cost)/(1+alike)
	for _, d := range scales {
		if float64(a.Capacity[d])*cost < grown*float64(b.Capacity[d]) {
			return false
		}
	}
	return true
}
