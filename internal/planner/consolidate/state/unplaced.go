package state

import "slices"

// Unplaced are the pods of removed bins which have no place yet, by class.
//
// Classes that need places are listed when they come; a class stays listed, once, until
// Begin starts a new list. Undoing changes restores counts, not the list.
//
// Invariant: listed[c] == round exactly for the classes c of the list.
type Unplaced struct {
	// count has one entry per class. It is below zero only while a fork replays.
	count []int32
	// classes are the classes that came since Begin, in the order in which to place
	// them once sorted.
	classes []int32
	// listed has one entry per class: the round in which it was listed last. round
	// counts the lists, from 1.
	listed []uint32
	round  uint32
}

// newUnplaced is an empty list for so many classes.
func newUnplaced(classes int) Unplaced {
	return Unplaced{count: make([]int32, classes), listed: make([]uint32, classes), round: 1}
}

// Begin starts a new list. What is unplaced already stays so, but is not listed.
func (u *Unplaced) Begin() {
	u.classes = u.classes[:0]
	if u.round++; u.round == 0 { // it has begun from the start: no old number may match
		clear(u.listed)
		u.round = 1
	}
}

// Relist lists all classes of which some pods are unplaced.
func (u *Unplaced) Relist() {
	u.Begin()
	for class := range u.count {
		if u.count[class] > 0 {
			u.list(int32(class))
		}
	}
}

// Classes are the listed classes. Some of them may have no unplaced pods.
func (u *Unplaced) Classes() []int32 { return u.classes }

// Of is how many pods of a class are unplaced.
func (u *Unplaced) Of(class int32) int32 { return u.count[class] }

// None reports whether all pods of the listed classes have places.
func (u *Unplaced) None() bool {
	for _, class := range u.classes {
		if u.count[class] > 0 {
			return false
		}
	}
	return true
}

// Sort puts the listed classes in the order of their ranks.
func (u *Unplaced) Sort(rank []int32) {
	slices.SortFunc(u.classes, func(x, y int32) int { return int(rank[x] - rank[y]) })
}

// Reverse turns the order of the listed classes round.
func (u *Unplaced) Reverse() { slices.Reverse(u.classes) }

// Drop forgets the pods of the listed classes.
func (u *Unplaced) Drop() {
	for _, class := range u.classes {
		u.count[class] = 0
	}
}

// Await adds pods that are about to be put, without listing their class.
func (u *Unplaced) Await(class, n int32) { u.count[class] += n }

// add adds pods which need a place.
func (u *Unplaced) add(class, n int32) {
	u.list(class)
	u.count[class] += n
}

// list lists a class that is not listed yet.
func (u *Unplaced) list(class int32) {
	if u.listed[class] != u.round {
		u.listed[class] = u.round
		u.classes = append(u.classes, class)
	}
}
