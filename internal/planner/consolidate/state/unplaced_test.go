package state

import (
	"math"
	"slices"
	"testing"
)

func TestUnplacedListsClassOnce(t *testing.T) {
	u := newUnplaced(3)
	u.Begin()
	u.add(2, 4)
	u.count[2] -= 4 // they have found places, and one bin of them is removed again
	u.add(2, 1)
	u.add(0, 1)
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
	u.add(1, 2)
	u.Begin()
	u.add(1, 1)
	if got := u.Classes(); !slices.Equal(got, []int32{1}) || u.Of(1) != 3 {
		t.Errorf("the list is %v with %d pods, want 1 with 3", got, u.Of(1))
	}
}

func TestUnplacedForgetsListsWhenItsCountEnds(t *testing.T) {
	u := newUnplaced(2)
	u.add(0, 1) // in round 1, the number that comes again
	u.round = math.MaxUint32
	u.Begin()
	u.add(0, 1)
	if got := u.Classes(); !slices.Equal(got, []int32{0}) {
		t.Errorf("the list is %v, want 0", got)
	}
}
