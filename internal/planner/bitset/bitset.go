// Package bitset has sets of small numbers, such as those of options, nodes and bin
// types, one bit each: the planner combines them word by word.
//
// See docs/planner.md, section "Constraints and masks".
package bitset

import (
	"math/bits"
	"slices"
)

// Set is a set of numbers from 0. Sets that are combined have the same length, but for
// [Set.SubsetOf]. The zero value is empty, and has no room.
type Set []uint64

// New returns an empty set with room for the numbers 0 to n-1.
func New(n int) Set { return make(Set, (n+63)/64) }

// Full returns the set of all numbers from 0 to n-1.
func Full(n int) Set {
	s := New(n)
	s.AddRange(0, n)
	return s
}

// Has reports whether i is a member; numbers for which the set has no room are none.
func (s Set) Has(i int) bool { return i>>6 < len(s) && s[i>>6]&(1<<(i&63)) != 0 }

// Add makes i a member. The set must have room for it.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove makes i a non-member.
func (s Set) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// AddRange makes every i in [from, to) a member.
func (s Set) AddRange(from, to int) {
	for from < to {
		if from&63 == 0 && to-from >= 64 {
			s[from>>6] = ^uint64(0)
			from += 64
			continue
		}
		mask, next := stretch(from, to)
		s[from>>6] |= mask
		from = next
	}
}

// RemoveRange makes every i in [from, to) a non-member.
func (s Set) RemoveRange(from, to int) {
	for from < to {
		mask, next := stretch(from, to)
		s[from>>6] &^= mask
		from = next
	}
}

// stretch is the part of [from, to) in the word of from, and where the rest
// begins.
func stretch(from, to int) (mask uint64, next int) {
	next = min(to, (from>>6+1)<<6)
	return ^uint64(0) >> (64 - (next - from)) << (from & 63), next
}

// Clone returns a copy.
func (s Set) Clone() Set { return append(Set(nil), s...) }

// And keeps the members that o has too.
func (s Set) And(o Set) {
	for i := range s {
		s[i] &= o[i]
	}
}

// Keep is And with a set that may be nil, which has all members.
func (s Set) Keep(o Set) {
	if o != nil {
		s.And(o)
	}
}

// AndNot drops the members that o has.
func (s Set) AndNot(o Set) {
	for i := range s {
		s[i] &^= o[i]
	}
}

// Or adds the members of o.
func (s Set) Or(o Set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// Any reports whether there is a member.
func (s Set) Any() bool {
	for _, w := range s {
		if w != 0 {
			return true
		}
	}
	return false
}

// Intersects reports whether the sets share a member.
func (s Set) Intersects(o Set) bool {
	for i, w := range s {
		if w&o[i] != 0 {
			return true
		}
	}
	return false
}

// SubsetOf reports whether every member is one of o, which may have another length.
func (s Set) SubsetOf(o Set) bool {
	for i, w := range s {
		if i < len(o) {
			w &^= o[i]
		}
		if w != 0 {
			return false
		}
	}
	return true
}

// Count is the number of members.
func (s Set) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// CountRange is the number of members in [from, to).
func (s Set) CountRange(from, to int) int {
	n := 0
	for from < to {
		mask, next := stretch(from, to)
		n += bits.OnesCount64(s[from>>6] & mask)
		from = next
	}
	return n
}

// Next returns the smallest member that is at least i, or -1.
func (s Set) Next(i int) int {
	w := i >> 6
	if w >= len(s) {
		return -1
	}
	if rest := s[w] >> (i & 63); rest != 0 {
		return i + bits.TrailingZeros64(rest)
	}
	for w++; w < len(s); w++ {
		if s[w] != 0 {
			return w<<6 + bits.TrailingZeros64(s[w])
		}
	}
	return -1
}

// Hash is the same for equal sets.
func (s Set) Hash() uint64 {
	h := uint64(14695981039346656037)
	for _, w := range s {
		h = (h ^ w) * 1099511628211
		h ^= h >> 29
	}
	return h
}

// All yields the members in ascending order.
func (s Set) All(yield func(int) bool) {
	for w, word := range s {
		for word != 0 {
			if !yield(w<<6 + bits.TrailingZeros64(word)) {
				return
			}
			word &= word - 1
		}
	}
}

// Interned numbers sets of one length, so that equal sets are one set with one number:
// callers compare and cache them by number, or by address. Reading it from several
// goroutines is safe once nothing is added any more. The zero value is empty.
type Interned struct {
	// sets are the sets by number.
	sets []Set
	// byHash are the numbers of the sets with a hash ([Set.Hash]), which need not be
	// equal.
	byHash map[uint64][]int
}

// Intern numbers a set, from 0; equal sets get the same number. A set that was not
// known is kept: do not change it afterwards.
func (t *Interned) Intern(set Set) int {
	h := set.Hash()
	for _, i := range t.byHash[h] {
		if slices.Equal(t.sets[i], set) {
			return i
		}
	}
	if t.byHash == nil {
		t.byHash = map[uint64][]int{}
	}
	i := len(t.sets)
	t.sets = append(t.sets, set)
	t.byHash[h] = append(t.byHash[h], i)
	return i
}

// Len is how many different sets have a number.
func (t *Interned) Len() int { return len(t.sets) }

// Set returns the set with a number given by Intern. It is shared: do not change it.
func (t *Interned) Set(number int) Set { return t.sets[number] }
