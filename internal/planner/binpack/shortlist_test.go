package binpack

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// graded draws problems in which bins come in many sizes at nearly one price per
// unit, so that a menu leaves most of them out.
func graded() *rapid.Generator[*Problem] {
	return rapid.Custom(func(t *rapid.T) *Problem {
		p := &Problem{Dims: 2, Seed: 1}
		for size := int64(4); size <= 16; size++ {
			p.Bins = append(p.Bins, Bin{Capacity: []int64{size*10 - 1, 20 * size}, Cost: 100*size + rapid.Int64Range(0, 1).Draw(t, "cent"), Max: -1})
		}
		for left := 7; left > 0; {
			c := Class{Count: rapid.IntRange(1, left).Draw(t, "count"), Bins: bitset.Full(len(p.Bins))}
			left -= c.Count
			c.Size = []int64{rapid.Int64Range(1, 90).Draw(t, "a"), rapid.Int64Range(1, 190).Draw(t, "b")}
			c.PerBin = rapid.IntRange(0, 2).Draw(t, "perBin")
			p.Classes = append(p.Classes, c)
		}
		return p
	})
}

func TestShortlistGivesValidBoundsAndPackings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := graded().Draw(t, "problem")
		c, unplaced := reduce(p)
		m := reduced.NewShortlist(c, 0)
		if 2*len(m.Types) > len(c.Buyable) {
			t.Fatalf("%d of %d kinds are on the menu", len(m.Types), len(c.Buyable))
		}
		g := construct.NewBuilder(m, p.Seed)
		bd := bound.NewBounder(m, c.NewPacking().Remaining)
		g.Pricer.Bound(bd, true)
		packed := c.NewPacking()
		g.Build(packed, construct.FirstRule, nil)
		s := &Solution{Unplaced: unplaced, FirstCost: packed.Cost, LowerBound: bd.Floor()}
		newWriter(p, packed).write(s)
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
		counts := make([]int, len(p.Classes))
		for i := range counts {
			counts[i] = p.Classes[i].Count - s.Unplaced[i]
		}
		if best, ok := optimum(p, counts); !ok || s.LowerBound > best || s.Cost < best {
			t.Fatalf("bound %d, optimum %d, cost %d", s.LowerBound, best, s.Cost)
		}
	})
}
