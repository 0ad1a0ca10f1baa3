package binpack

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// packed is a problem with its packing before the search.
func packed(p *Problem) (*core, *packing) {
	c, _ := reduce(p)
	m := newMenu(c, fewPairs)
	g := newGreedy(m, p.Seed)
	best := c.newPacking()
	g.prices.bound(newBounder(m, best.rem), true)
	g.build(best, firstRule, nil)
	return c, best
}

func TestItemsChangePlacesWhenThatMakesABinSmaller(t *testing.T) {
	p := &Problem{Dims: 1, Budget: time.Second, Bins: []Bin{{Capacity: []int64{8}, Cost: 8, Max: -1}, {Capacity: []int64{10}, Cost: 10, Max: -1}}}
	for _, size := range []int64{6, 5, 4, 3} {
		p.Classes = append(p.Classes, Class{Size: []int64{size}, Count: 1, Bins: FullBitset(2)})
	}
	c, _ := reduce(p)
	q := c.newPacking()
	b := newOpenBin(c)
	for _, items := range [][]int32{{0, 3}, {1, 2}} { // 6 with 3 and 5 with 4
		b.begin(1)
		for _, i := range items {
			b.put(i, 1)
		}
		q.buy(1, b.contents(), 1)
	}
	exchangeItems(q, newMeter(p), 1)
	if q.cost != 18 {
		t.Errorf("two bins cost %d, want one of 10 and one of 8", q.cost)
	}
}

func TestExchangesBreakNoRuleAndNeverCostMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(60).Draw(t, "problem")
		p.Budget = 10 * time.Millisecond
		_, best := packed(p)
		s := &Solution{FirstCost: best.cost}
		_, s.Unplaced = reduce(p)
		exchangeItems(best, newMeter(p), p.Seed)
		newWriter(p, best).write(s)
		if s.Cost > s.FirstCost {
			t.Fatalf("cost %d, it was %d", s.Cost, s.FirstCost)
		}
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
	})
}
