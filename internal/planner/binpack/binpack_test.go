package binpack

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// firstPlacesAll tells whether the first packing leaves nothing out, so that
// more time can only make it cheaper.
func firstPlacesAll(p *Problem) bool {
	first := *p
	first.Budget = 0
	return sum(Solve(&first).Unplaced) == 0
}

// verify returns what is wrong with a solution, or nil.
func verify(p *Problem, s *Solution) error {
	placed := make([]int, len(p.Classes))
	bought := make([]int, len(p.Bins))
	cost := int64(0)
	for n, b := range s.Bins {
		if b.Times < 1 || len(b.Counts) == 0 {
			return fmt.Errorf("bins[%d] is empty: %+v", n, b)
		}
		if err := verifyBin(p, b); err != nil {
			return fmt.Errorf("bins[%d]: %w", n, err)
		}
		for _, cc := range b.Counts {
			placed[cc.Class] += cc.Count * b.Times
		}
		bought[b.Type] += b.Times
		if !p.Bins[b.Type].Fixed {
			cost += p.Bins[b.Type].Cost * int64(b.Times)
		}
	}
	for i, n := range placed {
		if n+s.Unplaced[i] != max(0, p.Classes[i].Count) || s.Unplaced[i] < 0 {
			return fmt.Errorf("class %d: %d placed and %d unplaced are not %d", i, n, s.Unplaced[i], p.Classes[i].Count)
		}
	}
	for t, n := range bought {
		limit := p.Bins[t].Max
		if p.Bins[t].Fixed {
			limit = 1
		}
		if limit >= 0 && n > limit {
			return fmt.Errorf("%d bins of type %d, of which there are %d", n, t, limit)
		}
	}
	for i, sh := range p.Shared {
		used := int64(0)
		for t, n := range bought {
			used += useOf(&sh, t) * int64(n)
		}
		if used > max(0, sh.Left) {
			return fmt.Errorf("shared limit %d: %d used of %d", i, used, sh.Left)
		}
	}
	if cost != s.Cost {
		return fmt.Errorf("the bins cost %d, the solution says %d", cost, s.Cost)
	}
	if s.Cost > s.FirstCost && sum(s.Unplaced) == 0 && firstPlacesAll(p) {
		return fmt.Errorf("cost %d is above the first packing's %d", s.Cost, s.FirstCost)
	}
	if s.LowerBound > s.Cost {
		return fmt.Errorf("bound %d is above the cost %d", s.LowerBound, s.Cost)
	}
	return nil
}

func verifyBin(p *Problem, b Packed) error {
	owner := map[int32]int{}
	load := make([]int64, p.Dims)
	for k, cc := range b.Counts {
		cl := p.Classes[cc.Class]
		switch {
		case k > 0 && b.Counts[k-1].Class >= cc.Class:
			return fmt.Errorf("classes out of order")
		case !cl.Bins.Has(b.Type):
			return fmt.Errorf("type %d is not compatible with class %d", b.Type, cc.Class)
		case cl.PerBin > 0 && cc.Count > cl.PerBin:
			return fmt.Errorf("%d of class %d, more than %d", cc.Count, cc.Class, cl.PerBin)
		case cc.Count < 1:
			return fmt.Errorf("%d of class %d", cc.Count, cc.Class)
		}
		for _, id := range cl.Conflicts {
			if o, ok := owner[id]; ok && o != cc.Class {
				return fmt.Errorf("classes %d and %d conflict", o, cc.Class)
			}
			owner[id] = cc.Class
		}
		for d, v := range cl.Size {
			load[d] += v * int64(cc.Count)
		}
	}
	for d, v := range load {
		if v > p.Bins[b.Type].Capacity[d] {
			return fmt.Errorf("load %v exceeds capacity %v", load, p.Bins[b.Type].Capacity)
		}
	}
	return nil
}

func sum(s []int) int {
	n := 0
	for _, v := range s {
		n += v
	}
	return n
}

// problems generates small problems that use every feature.
func problems(items int) *rapid.Generator[*Problem] {
	return rapid.Custom(func(t *rapid.T) *Problem {
		p := &Problem{Dims: rapid.IntRange(1, 4).Draw(t, "dims"), Seed: 1}
		bins := rapid.IntRange(1, 6).Draw(t, "bins")
		for range bins {
			b := Bin{Cost: rapid.Int64Range(0, 50).Draw(t, "cost"), Max: -1}
			for range p.Dims {
				b.Capacity = append(b.Capacity, rapid.Int64Range(0, 30).Draw(t, "capacity"))
			}
			if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
				b.Max = rapid.IntRange(0, 2).Draw(t, "max")
			}
			b.Fixed = rapid.IntRange(0, 4).Draw(t, "fixed") == 0
			p.Bins = append(p.Bins, b)
		}
		for range rapid.IntRange(0, 2).Draw(t, "shared") {
			s := Shared{Left: rapid.Int64Range(0, 12).Draw(t, "left")}
			for range bins {
				s.Use = append(s.Use, rapid.Int64Range(0, 4).Draw(t, "use"))
			}
			p.Shared = append(p.Shared, s)
		}
		for left := items; left > 0; {
			c := Class{Count: rapid.IntRange(1, left).Draw(t, "count"), Bins: bitset.New(bins)}
			left -= c.Count
			for range p.Dims {
				c.Size = append(c.Size, rapid.Int64Range(0, 15).Draw(t, "size"))
			}
			for b := range bins {
				if rapid.IntRange(0, 3).Draw(t, "compatible") > 0 {
					c.Bins.Add(b)
				}
			}
			c.PerBin = rapid.IntRange(0, 2).Draw(t, "perBin")
			if rapid.IntRange(0, 2).Draw(t, "conflicted") == 0 {
				c.Conflicts = rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 2).Draw(t, "conflicts")
			}
			c.Priority = rapid.Int32Range(0, 1).Draw(t, "priority")
			p.Classes = append(p.Classes, c)
			if rapid.IntRange(0, 4).Draw(t, "enough") == 0 {
				break
			}
		}
		return p
	})
}

func TestSolveIsFeasibleAndAccountsForEveryItem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(60).Draw(t, "problem")
		if err := verify(p, Solve(p)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestBoundWithItemsThatNeedABinEach(t *testing.T) {
	p := &Problem{Dims: 1, Budget: 48 * time.Microsecond,
		Classes: []Class{{Size: []int64{3 << 60}, Count: 38, PerBin: 1, Bins: bitset.Full(1)}},
		Bins:    []Bin{{Capacity: []int64{3<<60 + 1}, Cost: 48, Max: 3}}}
	if err := verify(p, Solve(p)); err != nil {
		t.Fatal(err)
	}
}

func TestSolveLargeNumbersDoNotOverflow(t *testing.T) {
	p := &Problem{Dims: 2,
		Classes: []Class{{Size: []int64{math.MaxInt64 / 2, 1}, Count: 5, Bins: bitset.Full(1)},
			{Size: []int64{0, 0}, Count: 1 << 29, Bins: bitset.Full(1)}},
		Bins: []Bin{{Capacity: []int64{math.MaxInt64, math.MaxInt64}, Cost: 7, Max: -1}}}
	s := Solve(p)
	if s.Cost != 3*7 || sum(s.Unplaced) != 0 {
		t.Fatalf("cost %d, unplaced %v: want 3 bins and nothing left out", s.Cost, s.Unplaced)
	}
}
