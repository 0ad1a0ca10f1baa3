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
	// last has one entry per class: the last level at which its pods may be placed, so that
	// they keep the preferences that hold where they come from. It is valid for listed
	// classes.
	last []int8
	// anyLevel says that the listed pods may give up all preferences, anyWeight that they may
	// go to a NodePool of any weight.
	anyLevel, anyWeight bool
}

// newUnplaced is an empty list for so many classes.
func newUnplaced(classes int) Unplaced {
	return Unplaced{count: make([]int32, classes), listed: make([]uint32, classes), last: make([]int8, classes), round: 1}
}

// Begin starts a new list. What is unplaced already stays so, but is not listed.
func (u *Unplaced) Begin() {
	u.classes, u.anyLevel, u.anyWeight = u.classes[:0], false, false
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
			u.list(int32(class), u.last[class])
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

// ReleasePreferences lets the listed pods give up all preferences until a new list begins.
func (u *Unplaced) ReleasePreferences() { u.anyLevel = true }

// Release lets the listed pods give up all preferences, and go to a NodePool of any weight,
// until a new list begins.
func (u *Unplaced) Release() { u.anyLevel, u.anyWeight = true, true }

// Allows reports whether pods of a listed class may be placed at a level.
func (u *Unplaced) Allows(class int32, level int) bool {
	return u.anyLevel || level <= int(u.last[class])
}

// add adds pods which need a place, and come from one at a level.
func (u *Unplaced) add(class, n int32, level int8) {
	u.list(class, level)
	u.count[class] += n
}

// list lists a class that is not listed yet. Of pods that come from several levels all keep to
// the first of these.
func (u *Unplaced) list(class int32, level int8) {
	isNew := u.listed[class] != u.round
	if isNew {
		u.listed[class] = u.round
		u.classes = append(u.classes, class)
	}
	if level < u.last[class] || isNew && u.count[class] <= 0 {
		u.last[class] = level
	}
}
