package binpack

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/localsearch"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// crowded is a problem in which nothing runs out, with so many types of filled bins
// that two workers work on them.
func crowded(seed uint64) *Problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &Problem{Dims: 2, Seed: seed, Budget: 30 * time.Millisecond}
	for size := int64(20); size <= 80; size += 20 {
		p.Bins = append(p.Bins,
			Bin{Capacity: []int64{size, size}, Cost: size*10 + r.Int64N(40), Max: -1},
			Bin{Capacity: []int64{size, size * 2}, Cost: size*12 + r.Int64N(40), Max: -1})
	}
	for range 450 {
		c := Class{Count: 1 + r.IntN(2), Bins: bitset.Full(len(p.Bins)), Size: []int64{5 + r.Int64N(16), 5 + r.Int64N(36)}}
		switch r.IntN(6) {
		case 0:
			c.PerBin = 1
		case 1:
			c.Conflicts = []int32{r.Int32N(4)}
		case 2:
			c.Bins = bitset.New(len(p.Bins))
			for b := r.IntN(2); b < len(p.Bins); b += 2 {
				c.Bins.Add(b)
			}
		}
		p.Classes = append(p.Classes, c)
	}
	return p
}

// Both workers are at work, what they make is sound, never dearer than the packing they
// began with, and the same every time.
func TestTwoWorkersSolutionIsFeasible(t *testing.T) {
	for seed := range uint64(3) {
		p := crowded(seed)
		c, first := packed(p)
		if !c.Unlimited() || len(first.Patterns) < 2*localsearch.PatternsPerWorker {
			t.Fatalf("seed %d: %d patterns are left to one worker", seed, len(first.Patterns))
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

// What two workers do at the same time takes as long as what one of them does.
func TestTwoWorkersTryTwiceAsManyRounds(t *testing.T) {
	tried := func(run func(*localsearch.Search)) (int, int64) {
		p := crowded(1)
		c, start := packed(p)
		mn := reduced.NewShortlist(c, reduced.FewPairs)
		pr := bound.NewPricer(mn)
		pr.Sharpen(bound.NewBounder(mn, c.NewPacking().Remaining), meter.New(p.Budget, p.Clock))
		m := meter.New(p.Budget, p.Clock)
		m.Limit = 4 * localsearch.Apart
		s := localsearch.NewSearch(mn, pr.Now, start, m, p.Seed)
		run(s)
		return s.Rounds, s.Result().Cost
	}
	one, costOfOne := tried(func(s *localsearch.Search) { s.Run(0) })
	two, costOfTwo := tried(func(s *localsearch.Search) { s.RunInParallel(0, 2) })
	if 2*two < 3*one {
		t.Errorf("two workers try %d times, one %d times", two, one)
	}
	if float64(costOfTwo) > float64(costOfOne)*1.005 {
		t.Errorf("two workers end at %d, one at %d", costOfTwo, costOfOne)
	}
}

// Half of the items for each of two workers make a first packing about as good as all of
// them for one.
func TestTwoWorkersFirstPackingMatchesOneWorker(t *testing.T) {
	for seed := range uint64(5) {
		p := crowded(seed)
		c, one := packed(p)
		m := reduced.NewShortlist(c, reduced.FewPairs)
		g := construct.NewBuilder(m, p.Seed)
		two := c.NewPacking()
		g.Pricer.Bound(bound.NewBounder(m, two.Remaining), true)
		g.BuildInParallel(two, construct.FirstRule)
		s := &Solution{FirstCost: two.Cost}
		_, s.Unplaced = reduce(p)
		newWriter(p, two).write(s)
		if err := verify(p, s); err != nil || two.Left() > 0 {
			t.Fatalf("seed %d: %d left, %v", seed, two.Left(), err)
		}
		if two.Cost == one.Cost {
			t.Errorf("seed %d: one worker made it", seed)
		}
		if float64(two.Cost) > 1.02*float64(one.Cost) {
			t.Errorf("seed %d: two workers spend %d, one %d", seed, two.Cost, one.Cost)
		}
	}
}
