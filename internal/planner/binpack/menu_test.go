package binpack

import (
	"testing"

	"pgregory.net/rapid"
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
			c := Class{Count: rapid.IntRange(1, left).Draw(t, "count"), Bins: FullBitset(len(p.Bins))}
			left -= c.Count
			c.Size = []int64{rapid.Int64Range(1, 90).Draw(t, "a"), rapid.Int64Range(1, 190).Draw(t, "b")}
			c.PerBin = rapid.IntRange(0, 2).Draw(t, "perBin")
			p.Classes = append(p.Classes, c)
		}
		return p
	})
}

func TestAShortMenuGivesTrueBoundsAndPackings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := graded().Draw(t, "problem")
		c, unplaced := reduce(p)
		m := newMenu(c, 0)
		if 2*len(m.kinds) > len(c.buyable) {
			t.Fatalf("%d of %d kinds are on the menu", len(m.kinds), len(c.buyable))
		}
		g := newGreedy(m, p.Seed)
		bd := newBounder(m, c.newPacking().rem)
		g.prices.bound(bd, true)
		packed := c.newPacking()
		g.build(packed, firstRule, nil)
		s := &Solution{Unplaced: unplaced, FirstCost: packed.cost, LowerBound: bd.floor()}
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
