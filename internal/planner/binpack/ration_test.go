package binpack

import (
	"math"
	"testing"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// The sizes of items that every bin of the first type holds ten of, and of others.
const (
	smallSize = 90
	largeSize = 400
)

// ranked are classes of one small item each, all of different priority, and so many bins for ten of
// them. Beside are another bin and the classes that only this one holds: one more of each priority
// with so many large items, of which a bin holds so many.
func ranked(priorities, bins, beside, perBin int) *Problem {
	p := &Problem{Dims: 1, Seed: 1, Bins: []Bin{{Capacity: []int64{1_000}, Cost: 10, Max: bins}, {Capacity: []int64{5_000}, Cost: 60, Max: 1}}}
	if perBin > 0 {
		p.Bins[1].Capacity[0] = 1_000_000
	}
	add := func(i, bin, count, perBin int, size int64) {
		c := Class{Size: []int64{size}, Count: count, PerBin: perBin, Priority: int32(i), Bins: bitset.New(2)}
		c.Bins.Add(bin)
		p.Classes = append(p.Classes, c)
	}
	for i := range priorities {
		add(i, 0, 1, 0, smallSize+int64(i%2))
		if beside > 0 {
			add(i, 1, beside, perBin, largeSize)
		}
	}
	return p
}

// ration is what remains of each class after rationing, and how many steps that took.
func ration(p *Problem) (c *reduced.Problem, remaining []int, steps int64) {
	c, _ = reduce(p)
	g := construct.NewBuilder(reduced.NewShortlist(c, reduced.FewPairs), p.Seed)
	best := c.NewPacking()
	g.Pricer.Bound(bound.NewBounder(g.List, best.Remaining), true)
	g.BuildInParallel(best, construct.FirstRule)
	m := meter.New(0, meter.Clock{})
	g.Account(m)
	before := m.Steps
	best = g.Ration(best, false)
	g.Account(m)
	return c, best.Remaining, m.Steps - before
}

// inOrder reports whether the small items that remain are those of lowest priority.
func inOrder(c *reduced.Problem, remaining []int) bool {
	placed, left := int32(math.MaxInt32), int32(-1) // the lowest and the highest priority
	for i, n := range remaining {
		switch priority := c.Classes[i].Priority; {
		case c.Classes[i].Size[0] >= largeSize:
		case n == 0:
			placed = min(placed, priority)
		default:
			left = max(left, priority)
		}
	}
	return left >= 0 && placed > left
}

// Of many priorities the highest go first, and hardly more is packed again than for a few of them:
// also where each has an item that finds no room, or where of each the half does.
func TestRationOfManyPrioritiesCostsLittle(t *testing.T) {
	c, remaining, few := ration(ranked(60, 3, 0, 0))
	if !inOrder(c, remaining) {
		t.Errorf("of 60 priorities remain %v", remaining)
	}
	for _, beside := range []struct{ items, perBin int }{{0, 0}, {1, 0}, {2, 1}} {
		p := ranked(1_500, 40, beside.items, beside.perBin)
		c, remaining, many := ration(p)
		if many > 200*few {
			t.Errorf("%v: %d steps for 1,500 priorities, %d for 60", beside, many, few)
		}
		if beside.perBin == 0 && !inOrder(c, remaining) {
			t.Errorf("%v: the wrong items remain: %v", beside, remaining)
		}
		if err := verify(p, Solve(p)); err != nil {
			t.Errorf("%v: %v", beside, err)
		}
	}
}
