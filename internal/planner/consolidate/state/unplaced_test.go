package state

import (
	"math"
	"slices"
	"testing"
)

func TestUnplacedListsClassOnce(t *testing.T) {
	u := newUnplaced(3)
	u.Begin()
	u.add(2, 4, 0)
	u.count[2] -= 4 // they have found places, and one bin of them is removed again
	u.add(2, 1, 0)
	u.add(0, 1, 0)
	if got := u.Classes(); !slices.Equal(got, []int32{2, 0}) {
		t.Errorf("the list is %v, want 2 and 0 once each", got)
	}
	u.Begin()
	u.Relist()
	if got := u.Classes(); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("the new list is %v, want 0 and 2", got)
	}
}

func TestUnplacedListsPodsBesideThoseOfAnOldList(t *testing.T) {
	u := newUnplaced(2)
	u.add(1, 2, 0)
	u.Begin()
	u.add(1, 1, 0)
	if got := u.Classes(); !slices.Equal(got, []int32{1}) || u.Of(1) != 3 {
		t.Errorf("the list is %v with %d pods, want 1 with 3", got, u.Of(1))
	}
}

func TestUnplacedForgetsListsWhenItsCountEnds(t *testing.T) {
	u := newUnplaced(2)
	u.add(0, 1, 0) // in round 1, the number that comes again
	u.round = math.MaxUint32
	u.Begin()
	u.add(0, 1, 0)
	if got := u.Classes(); !slices.Equal(got, []int32{0}) {
		t.Errorf("the list is %v, want 0", got)
	}
}

func TestUnplacedKeepToTheFirstLevelOfTheirPlaces(t *testing.T) {
	u := newUnplaced(2)
	want := func(what string, class int32, last int) {
		t.Helper()
		for level := range 4 {
			if u.Allows(class, level) != (level <= last) {
				t.Errorf("%s: level %d is allowed: %v, want up to level %d", what, level, u.Allows(class, level), last)
			}
		}
	}
	u.Begin()
	u.add(1, 1, 2)
	want("one place", 1, 2)
	u.add(1, 1, 1)
	u.add(1, 1, 3)
	want("the first of several", 1, 1)
	u.Begin()
	u.Relist()
	want("listed again", 1, 1)
	u.Begin()
	u.add(1, 1, 3)
	want("beside those of an old list", 1, 1)
	u.count[1] = 0
	u.Begin()
	u.add(1, 1, 3)
	want("a new list", 1, 3)
	u.Begin()
	u.add(1, 1, 0)
	u.Release()
	want("released", 1, 3)
	u.Begin()
	want("the list after that", 1, 0)
}
