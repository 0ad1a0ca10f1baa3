package binpack

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// optimum is the least cost of packing the given number of items of every class,
// found by trying everything, or false when they cannot all be packed.
func optimum(p *Problem, counts []int) (int64, bool) {
	o := &exhaustive{p: p, best: math.MaxInt64, bought: make([]int, len(p.Bins))}
	for i, n := range counts {
		for range n {
			o.items = append(o.items, i)
		}
	}
	o.place(0, 0)
	return o.best, o.best < math.MaxInt64
}

type exhaustive struct {
	p      *Problem
	items  []int
	bins   []triedBin
	bought []int
	best   int64
	over   *Domains // whose spans hold, if any
}

// keepsTo reports whether the bins hold as many items of each class in every domain as they
// should.
func (o *exhaustive) keepsTo(d *Domains) bool {
	for i, spans := range d.Spans {
		held := make([]int, d.Count)
		for _, b := range o.bins {
			held[d.Of[b.kind]] += b.held[i]
		}
		for at, s := range spans {
			if held[at] < s.Least || held[at] > s.Most {
				return false
			}
		}
	}
	return true
}

type triedBin struct {
	kind int
	held []int // by class
}

func (o *exhaustive) place(k int, cost int64) {
	if cost >= o.best {
		return
	}
	if k == len(o.items) {
		if o.over == nil || o.keepsTo(o.over) {
			o.best = cost
		}
		return
	}
	i := o.items[k]
	for b := range o.bins {
		if o.fits(o.bins[b], i) {
			o.bins[b].held[i]++
			o.place(k+1, cost)
			o.bins[b].held[i]--
		}
	}
	for t := range o.p.Bins {
		nb := triedBin{t, make([]int, len(o.p.Classes))}
		if !o.mayBuy(t) || !o.fits(nb, i) {
			continue
		}
		price := o.p.Bins[t].Cost
		if o.p.Bins[t].Fixed {
			price = 0
		}
		nb.held[i]++
		o.bins = append(o.bins, nb)
		o.bought[t]++
		o.place(k+1, cost+price)
		o.bought[t]--
		o.bins = o.bins[:len(o.bins)-1]
	}
}

func (o *exhaustive) mayBuy(t int) bool {
	limit := o.p.Bins[t].Max
	if o.p.Bins[t].Fixed && limit != 0 {
		limit = 1
	}
	if limit >= 0 && o.bought[t] >= limit {
		return false
	}
	for _, s := range o.p.Shared {
		used := useOf(&s, t)
		for u, n := range o.bought {
			used += useOf(&s, u) * int64(n)
		}
		if used > s.Left && useOf(&s, t) > 0 {
			return false
		}
	}
	return true
}

func (o *exhaustive) fits(b triedBin, i int) bool {
	cl := o.p.Classes[i]
	if !cl.Bins.Has(b.kind) || cl.PerBin > 0 && b.held[i] >= cl.PerBin {
		return false
	}
	for d, v := range cl.Size {
		for j, n := range b.held {
			v += o.p.Classes[j].Size[d] * int64(n)
		}
		if v > o.p.Bins[b.kind].Capacity[d] {
			return false
		}
	}
	for j, n := range b.held {
		if n > 0 && j != i && slices.ContainsFunc(cl.Conflicts, func(id int32) bool { return slices.Contains(o.p.Classes[j].Conflicts, id) }) {
			return false
		}
	}
	return true
}

func TestBoundIsBelowOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(6).Draw(t, "problem")
		p.Budget = time.Duration(rapid.IntRange(0, 1).Draw(t, "budget")) * time.Millisecond
		s := Solve(p)
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
		placed := make([]int, len(p.Classes))
		for i := range placed {
			placed[i] = max(0, p.Classes[i].Count) - s.Unplaced[i]
		}
		best, ok := optimum(p, placed)
		if !ok {
			t.Fatalf("the solver placed %v, which the oracle says is impossible", placed)
		}
		if s.LowerBound > best {
			t.Fatalf("bound %d is above the optimum %d", s.LowerBound, best)
		}
		if s.Cost < best {
			t.Fatalf("cost %d is below the optimum %d", s.Cost, best)
		}
	})
}

func TestFewItemsArePackedAtLeastCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(7).Draw(t, "problem")
		p.Shared, p.Budget = nil, time.Millisecond
		for i := range p.Bins {
			p.Bins[i].Max, p.Bins[i].Fixed = -1, false
		}
		s := Solve(p)
		if err := verify(p, s); err != nil {
			t.Fatal(err)
		}
		placed := make([]int, len(p.Classes))
		for i := range placed {
			placed[i] = p.Classes[i].Count - s.Unplaced[i]
		}
		best, _ := optimum(p, placed)
		if s.Cost != best || s.LowerBound != best {
			t.Fatalf("cost %d, bound %d, but the optimum is %d", s.Cost, s.LowerBound, best)
		}
		if bound := Bound(p); bound != best {
			t.Fatalf("the bound alone is %d, but the optimum is %d", bound, best)
		}
	})
}

// Large costs are proven to the last micro-dollar, though the bounds of programs are not.
func TestExactBoundsAreNotRounded(t *testing.T) {
	p := &Problem{
		Dims: 1, Budget: time.Millisecond,
		Classes: []Class{{Size: []int64{3}, Count: 500, Bins: bitset.Full(2)}},
		Bins:    []Bin{{Capacity: []int64{7}, Cost: 20_000_003, Max: -1}, {Capacity: []int64{16}, Cost: 40_000_007, Max: -1}},
	}
	if s := Solve(p); s.LowerBound != s.Cost || s.Cost != 100*40_000_007 || Bound(p) != s.Cost {
		t.Errorf("costs %d, at least %d or %d", s.Cost, s.LowerBound, Bound(p))
	}
}

// Bins that exist, and types of which only some can be bought, are part of the proof.
func TestBoundOfFewItemsIsTheOptimum(t *testing.T) {
	proven := 0
	rapid.Check(t, func(t *rapid.T) {
		p := problems(7).Draw(t, "problem")
		p.Shared, p.Budget = nil, time.Millisecond
		counts := make([]int, len(p.Classes))
		for i := range counts {
			counts[i] = p.Classes[i].Count
		}
		best, possible := optimum(p, counts)
		if !possible {
			return
		}
		if proven++; Bound(p) != best {
			t.Fatalf("the bound is %d, but the optimum is %d", Bound(p), best)
		}
	})
	if proven == 0 {
		t.Error("no problem was drawn whose items can all be packed")
	}
}

func TestBoundOverDomainsIsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(6).Draw(t, "problem")
		p.Shared, p.Budget = nil, time.Millisecond
		d := &Domains{Count: rapid.IntRange(1, 3).Draw(t, "domains"), Spans: make([][]Span, len(p.Classes))}
		for range p.Bins {
			d.Of = append(d.Of, rapid.IntRange(0, d.Count-1).Draw(t, "domain"))
		}
		o := &exhaustive{p: p, best: math.MaxInt64, bought: make([]int, len(p.Bins)), over: d}
		for i := range p.Classes {
			for range p.Classes[i].Count {
				o.items = append(o.items, i)
			}
			for range d.Count * rapid.IntRange(0, 1).Draw(t, "spread") {
				least := rapid.IntRange(0, 4).Draw(t, "least") / 4
				d.Spans[i] = append(d.Spans[i], Span{least, least + rapid.IntRange(0, 4).Draw(t, "more")})
			}
		}
		o.place(0, 0)
		bound, proves := BoundOver(p, d)
		if possible := o.best < math.MaxInt64; proves != possible || possible && bound != o.best {
			t.Fatalf("the bound is %d (%v), but the optimum is %d", bound, proves, o.best)
		}
	})
}

func TestBoundOverDomainsCountsItemsOfEach(t *testing.T) {
	p := &Problem{
		Dims: 1, Budget: time.Millisecond,
		Classes: []Class{{Size: []int64{1}, Count: 4, Bins: bitset.Full(2)}, {Size: []int64{2}, Count: 1, Bins: bitset.Full(2)}},
		Bins:    []Bin{{Capacity: []int64{6}, Cost: 10, Max: -1}, {Capacity: []int64{6}, Cost: 12, Max: -1}},
	}
	d := &Domains{Count: 2, Of: []int{0, 1}, Spans: [][]Span{{{1, 3}, {1, 3}}, nil}}
	if over, solved := BoundOver(p, d); !solved || over != 22 || Bound(p) != 10 {
		t.Errorf("items of two domains cost at least %d (%v), of any %d", over, solved, Bound(p))
	}
	d.Spans[0] = []Span{{0, 1}, {0, 2}}
	if over, solved := BoundOver(p, d); solved {
		t.Errorf("items that no domain takes cost at least %d", over)
	}
	d.Spans[0] = nil
	if d.Count = mostDomains + 1; Countable(p, d.Count) {
		t.Errorf("%d domains are counted, each of which looks at all bins", d.Count)
	}
}

func TestSolveLeavesOutOnlyItemsThatFitNowhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(40).Draw(t, "problem")
		s := Solve(p)
		o := &exhaustive{p: p, bought: make([]int, len(p.Bins))}
		for _, b := range s.Bins {
			held := make([]int, len(p.Classes))
			for _, cc := range b.Counts {
				held[cc.Class] = cc.Count
			}
			o.bins = append(o.bins, triedBin{b.Type, held})
			o.bought[b.Type] += b.Times
		}
		for i, n := range s.Unplaced {
			if n == 0 {
				continue
			}
			for k, b := range o.bins {
				if o.fits(b, i) {
					t.Fatalf("class %d is left out, though bin %d (%+v) has room", i, k, s.Bins[k])
				}
			}
			for b := range p.Bins {
				if o.mayBuy(b) && o.fits(triedBin{b, make([]int, len(p.Classes))}, i) {
					t.Fatalf("class %d is left out, though a bin of type %d may be bought", i, b)
				}
			}
		}
	})
}

func TestSolveIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(60).Draw(t, "problem")
		p.Budget = time.Millisecond
		a, b := Solve(p), Solve(p)
		if !slices.EqualFunc(a.Bins, b.Bins, func(x, y Packed) bool {
			return x.Type == y.Type && x.Times == y.Times && slices.Equal(x.Counts, y.Counts)
		}) || a.LowerBound != b.LowerBound || a.Steps != b.Steps {
			t.Fatalf("two solutions of one problem:\n%+v\n%+v", a, b)
		}
	})
}

func TestSolveLargerBudgetIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems(60).Draw(t, "problem")
		last := Solve(p)
		for _, us := range []int{20, 100, 500, 2000} {
			p.Budget = time.Duration(us) * time.Microsecond
			s := Solve(p)
			if sum(s.Unplaced) == sum(last.Unplaced) && s.Cost > last.Cost {
				t.Fatalf("%v costs %d, less time %d", p.Budget, s.Cost, last.Cost)
			}
			if sum(s.Unplaced) > sum(last.Unplaced) {
				t.Fatalf("%v leaves %d out, less time %d", p.Budget, sum(s.Unplaced), sum(last.Unplaced))
			}
			last = s
		}
	})
}

// The limit leaves one item out until the search happens on three equal bins,
// which it must not leave again for others of the same cost.
func TestSearchPlacesLeftOutItemOnceItFits(t *testing.T) {
	p := &Problem{
		Dims:    1,
		Classes: []Class{{Size: []int64{6}, Count: 9, Bins: bitset.Set{1}}, {Size: []int64{10}, Count: 3, Bins: bitset.Set{1}}},
		Bins:    []Bin{{Capacity: []int64{28}, Cost: 5, Max: -1}},
		Shared:  []Shared{{Left: 3, Use: []int64{1}}},
		Seed:    1,
	}
	if s := Solve(p); sum(s.Unplaced) != 1 {
		t.Fatalf("the first packing leaves out %v, so that nothing is tried here", s.Unplaced)
	}
	for _, budget := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, 2 * time.Millisecond} {
		p.Budget = budget
		if s := Solve(p); sum(s.Unplaced) != 0 {
			t.Errorf("within %v %v are left out: %+v", budget, s.Unplaced, s.Bins)
		}
	}
}
