package binpack

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// packed is a problem with its packing before the search.
func packed(p *Problem) (*core, *packing) {
	c, _ := reduce(p)
	g := newGreedy(c, p.Seed)
	best := c.newPacking()
	g.bound(newBounder(c, best.rem), true)
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
	f := newFiller(c)
	for _, items := range [][]int32{{0, 3}, {1, 2}} { // 6 with 3 and 5 with 4
		f.begin(1)
		for _, i := range items {
			f.put(i, 1)
		}
		q.buy(f, 1, 1)
	}
	c.exchangeItems(q, newMeter(p), 1)
	if q.cost != 18 {
		t.Errorf("two bins cost %d, want one of 10 and one of 8", q.cost)
	}
}

func TestExchangesBreakNoRuleAndNeverCostMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(60).Draw(t, "problem")
		p.Budget = 10 * time.Millisecond
		c, best := packed(p)
		s := &Solution{FirstCost: best.cost}
		_, s.Unplaced = reduce(p)
		c.exchangeItems(best, newMeter(p), p.Seed)
		c.write(p, best, s)
		if s.Cost > s.FirstCost {
			t.Fatalf("cost %d, it was %d", s.Cost, s.FirstCost)
		}
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
	})
}
