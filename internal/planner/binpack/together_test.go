package binpack

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// crowded is a problem in which nothing runs out, with so many kinds of filled bins
// that two hands work on them.
func crowded(seed uint64) *Problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &Problem{Dims: 2, Seed: seed, Budget: 30 * time.Millisecond}
	for size := int64(20); size <= 80; size += 20 {
		p.Bins = append(p.Bins,
			Bin{Capacity: []int64{size, size}, Cost: size*10 + r.Int64N(40), Max: -1},
			Bin{Capacity: []int64{size, size * 2}, Cost: size*12 + r.Int64N(40), Max: -1})
	}
	for range 450 {
		c := Class{Count: 1 + r.IntN(2), Bins: FullBitset(len(p.Bins)), Size: []int64{5 + r.Int64N(16), 5 + r.Int64N(36)}}
		switch r.IntN(6) {
		case 0:
			c.PerBin = 1
		case 1:
			c.Conflicts = []int32{r.Int32N(4)}
		case 2:
			c.Bins = NewBitset(len(p.Bins))
			for b := r.IntN(2); b < len(p.Bins); b += 2 {
				c.Bins.Set(b)
			}
		}
		p.Classes = append(p.Classes, c)
	}
	return p
}

// Both hands are at work, what they make is sound, never dearer than the packing they
// began with, and the same every time.
func TestTwoHandsMakeOneSoundPacking(t *testing.T) {
	for seed := range uint64(3) {
		p := crowded(seed)
		c, first := packed(p)
		if !c.unlimited() || len(first.patterns) < 2*patternsPerHand {
			t.Fatalf("seed %d: %d patterns are left to one hand", seed, len(first.patterns))
		}
		s := Solve(p)
		if err := verify(p, s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if s.Cost >= s.FirstCost || s.LowerBound > s.Cost {
			t.Errorf("seed %d: cost %d, first %d, bound %d", seed, s.Cost, s.FirstCost, s.LowerBound)
		}
		if again := Solve(p); !reflect.DeepEqual(s, again) {
			t.Errorf("seed %d: two solutions of one problem", seed)
		}
	}
}

// What two hands do at the same time takes as long as what one of them does.
func TestTwoHandsTryTwiceAsMuch(t *testing.T) {
	tried := func(run func(*search)) (int, int64) {
		p := crowded(1)
		c, start := packed(p)
		mn := newMenu(c, fewPairs)
		pr := newPricer(mn)
		pr.sharpen(newBounder(mn, c.newPacking().rem), newMeter(p))
		m := newMeter(p)
		m.limit = 4 * apart
		s := newSearch(mn, pr.now, start, m, p.Seed)
		run(s)
		return s.rounds, s.result().cost
	}
	one, costOfOne := tried(func(s *search) { s.run(0) })
	two, costOfTwo := tried(func(s *search) { s.runByTwo(0, 2) })
	if 2*two < 3*one {
		t.Errorf("two hands try %d times, one %d times", two, one)
	}
	if float64(costOfTwo) > float64(costOfOne)*1.005 {
		t.Errorf("two hands end at %d, one at %d", costOfTwo, costOfOne)
	}
}

// Half of the items for each of two hands make a first packing about as good as all of
// them for one.
func TestTwoHandsMakeAFirstPackingLikeOne(t *testing.T) {
	for seed := range uint64(5) {
		p := crowded(seed)
		c, one := packed(p)
		m := newMenu(c, fewPairs)
		g := newGreedy(m, p.Seed)
		two := c.newPacking()
		g.prices.bound(newBounder(m, two.rem), true)
		g.buildByTwo(two, firstRule)
		s := &Solution{FirstCost: two.cost}
		_, s.Unplaced = reduce(p)
		newWriter(p, two).write(s)
		if err := verify(p, s); err != nil || two.left() > 0 {
			t.Fatalf("seed %d: %d left, %v", seed, two.left(), err)
		}
		if two.cost == one.cost {
			t.Errorf("seed %d: one hand made it", seed)
		}
		if float64(two.cost) > 1.02*float64(one.cost) {
			t.Errorf("seed %d: two hands spend %d, one %d", seed, two.cost, one.cost)
		}
	}
}
