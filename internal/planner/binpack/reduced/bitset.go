package reduced

import "math/bits"

// Bitset is a set of small non-negative integers. The zero value is empty.
type Bitset []uint64

// NewBitset returns an empty set with room for the integers 0 to n-1.
func NewBitset(n int) Bitset { return make(Bitset, (n+63)/64) }

// FullBitset returns the set of all integers from 0 to n-1.
func FullBitset(n int) Bitset {
	b := NewBitset(n)
	for i := range b {
		b[i] = ^uint64(0)
	}
	if r := n % 64; r != 0 {
		b[len(b)-1] = 1<<r - 1
	}
	return b
}

// Set adds i, which must be below the size the set was made with.
func (b Bitset) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Has tells whether i is in the set; integers beyond its size are not.
func (b Bitset) Has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 == 1 }

// Count returns how many integers are in the set.
func (b Bitset) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty tells whether nothing is in the set.
func (b Bitset) Empty() bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

// SubsetOf tells whether every member is also in o.
func (b Bitset) SubsetOf(o Bitset) bool {
	for i, w := range b {
		if i < len(o) {
			w &^= o[i]
		}
		if w != 0 {
			return false
		}
	}
	return true
}

// Each calls f with every member in ascending order.
func (b Bitset) Each(f func(i int)) {
	for w, word := range b {
		for word != 0 {
			f(w<<6 + bits.TrailingZeros64(word))
			word &= word - 1
		}
	}
}
