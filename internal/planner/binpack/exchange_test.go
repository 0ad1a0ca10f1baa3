package binpack

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/localsearch"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// packed is a problem with its packing before the search.
func packed(p *Problem) (*reduced.Problem, *reduced.Packing) {
	c, _ := reduce(p)
	m := reduced.NewShortlist(c, reduced.FewPairs)
	g := construct.NewBuilder(m, p.Seed)
	best := c.NewPacking()
	g.Pricer.Bound(bound.NewBounder(m, best.Remaining), true)
	g.Build(best, construct.FirstRule, nil)
	return c, best
}

func TestExchangeShrinksBin(t *testing.T) {
	p := &Problem{
		Dims: 1, Budget: time.Second, Bins: []Bin{{Capacity: []int64{8}, Cost: 8, Max: -1}, {Capacity: []int64{10}, Cost: 10, Max: -1}},
	}
	for _, size := range []int64{6, 5, 4, 3} {
		p.Classes = append(p.Classes, Class{Size: []int64{size}, Count: 1, Bins: bitset.Full(2)})
	}
	c, _ := reduce(p)
	q := c.NewPacking()
	b := construct.NewOpenBin(c)
	for _, items := range [][]int32{{0, 3}, {1, 2}} { // 6 with 3 and 5 with 4
		b.Begin(1)
		for _, i := range items {
			b.Put(i, 1)
		}
		q.Buy(1, b.Contents(), 1)
	}
	localsearch.Exchange(q, meter.New(p.Budget, p.Clock), 1)
	if q.Cost != 18 {
		t.Errorf("two bins cost %d, want one of 10 and one of 8", q.Cost)
	}
}

func TestExchangeIsFeasibleAndNeverCostsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(60).Draw(t, "problem")
		p.Budget = 10 * time.Millisecond
		_, best := packed(p)
		s := &Solution{FirstCost: best.Cost}
		_, s.Unplaced = reduce(p)
		localsearch.Exchange(best, meter.New(p.Budget, p.Clock), p.Seed)
		newWriter(p, best).write(s)
		if s.Cost > s.FirstCost {
			t.Fatalf("cost %d, it was %d", s.Cost, s.FirstCost)
		}
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
	})
}
