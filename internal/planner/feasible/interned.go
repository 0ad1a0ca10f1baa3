package feasible

import "slices"

// InternedSets numbers sets of one [Space], so that equal sets are one set with one
// number: callers compare and cache them by number, or by address. It grows while an
// instance is compiled; reading it from several goroutines is safe once nothing is
// added any more. The zero value is empty.
type InternedSets struct {
	// sets are the sets by number.
	sets []Set
	// byHash are the numbers of the sets with a hash ([Set.Hash]), which need not be
	// equal.
	byHash map[uint64][]int
}

// Intern numbers a set, from 0; equal sets get the same number. A set that was not
// known is kept: do not change it afterwards.
func (t *InternedSets) Intern(set Set) int {
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

// Set returns the set with a number given by Intern. It is shared: do not change it.
func (t *InternedSets) Set(number int) Set { return t.sets[number] }
