package bound

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// columns sharpens the bound of a small problem beyond what the refiner can
// know, namely how awkwardly whole items fit into bins. It solves the linear
// program over all fillings of bins by column generation (Gilmore and Gomory
// 1961): prices from the fillings so far, and for every type of bin the filling
// that is worth most at these prices, found by branch and bound. Whenever the
// best fillings of all types are known, the prices prove a bound.
//
// Prices halfway to those of the best bound so far are tried first, as those of
// the program alone jump about (Neame 1999).
type columns struct {
	c      *reduced.Problem
	bd     *Bounder
	lp     *lp
	center []float64
	tree   tree
	idx    []int32
	val    []float64
}

// mostColumnSteps bounds the work, which is worth more in the search before long.
const mostColumnSteps = 1_500_000

// fewClasses is up to how many classes a problem is small enough.
const fewClasses = 64

// A bound nearLP times the linear program is near enough, and fillings worth less
// than dear times their cost are not looked for: near the end there are very many
// that are worth just that.
const (
	nearLP = 0.9985
	dear   = 1.001
)

// GenerateColumns raises bd's bound, from prices value per item and the fillings
// in p, which may be nil. It takes no more than a quarter of the budget.
func GenerateColumns(bd *Bounder, value []float64, p *reduced.Packing, m *meter.Meter) {
	c := bd.c
	limited := slices.ContainsFunc(c.Types, func(k reduced.BinType) bool { return k.Max >= 0 })
	if limited || len(c.Shared) > 0 || len(c.Classes) == 0 || len(c.Classes) > fewClasses || !bd.small() || !bd.List.Whole() {
		return
	}
	s := &columns{c: c, bd: bd, center: slices.Clone(value), tree: tree{ks: bd.ks, limit: fewNodes}}
	s.start(p)
	end := m.Steps + min(m.Limit/4, mostColumnSteps)
	for m.Steps < end && !m.Over() {
		before := s.lp.steps
		solved := s.lp.Solve(50 * len(c.Classes))
		primal := 0.0
		for i, j := range s.lp.Basis {
			primal += s.lp.X[i] * s.lp.Cost[j]
		}
		if solved && bd.Best >= primal*nearLP {
			return
		}
		s.tree.cut = false
		more := s.round(0.5, m) || s.round(0, m)
		m.Spend(s.lp.steps - before)
		if !more {
			if !s.tree.cut || s.tree.limit > mostNodes {
				return
			}
			s.tree.limit *= 8
		}
	}
}

// start states the program with bins of one class each and the fillings in p.
func (s *columns) start(p *reduced.Packing) {
	c := s.c
	demand, price := make([]float64, len(c.Classes)), make([]float64, len(c.Classes))
	for i := range c.Classes {
		demand[i] = float64(s.bd.count[i])
		price[i] = 1e3 * float64(c.Types[c.Buyable[len(c.Buyable)-1]].Cost+1)
	}
	s.lp = NewLP(demand, make([]bool, len(demand)), price)
	for i := range c.Classes {
		cl := &c.Classes[i]
		best, at, most := math.Inf(1), int32(-1), 0
		for _, t := range c.Buyable {
			if k := &c.Types[t]; c.CanHold(k, cl) {
				n := reduced.MostOf(cl, k.Capacity)
				if rate := float64(k.Cost) / float64(n); rate < best {
					best, at, most = rate, t, n
				}
			}
		}
		if at >= 0 {
			s.lp.Add(float64(c.Types[at].Cost), []int32{int32(i)}, []float64{float64(most)})
		}
	}
	if p == nil {
		return
	}
	for _, pt := range p.Patterns {
		s.idx, s.val = s.idx[:0], s.val[:0]
		for _, it := range pt.Items {
			s.idx, s.val = append(s.idx, it.Class), append(s.val, float64(it.Count))
		}
		s.lp.Add(float64(c.Types[pt.Type].Cost), s.idx, s.val)
	}
}

// round fills every type at prices that are the given part of the way from the
// program's to the center, proves what they imply, and tells whether it found
// fillings that the program lacks.
func (s *columns) round(part float64, m *meter.Meter) bool {
	b, theta, found := s.bd, 1.0, false
	for i := range b.y {
		b.y[i] = max(0, (1-part)*s.lp.Y[i]+part*s.center[i])
	}
	for _, t := range s.c.Buyable {
		cost := float64(s.c.Types[t].Cost)
		b.load(t)
		worth := s.tree.fill(cost * dear)
		m.Spend(int64(4 * s.tree.nodes))
		if worth > cost {
			theta = min(theta, cost/worth)
		}
		s.idx, s.val = s.idx[:0], s.val[:0]
		real := 0.0
		for j, n := range s.tree.most {
			if n > 0 {
				i := b.ks.class[j]
				s.idx, s.val = append(s.idx, i), append(s.val, float64(n))
				real += s.lp.Y[i] * float64(n)
			}
		}
		if real > cost*(1+1e-7) {
			s.lp.Add(cost, s.idx, s.val)
			found = true
		}
	}
	if v := b.total(theta, nil); v > b.Best {
		b.Best = v
		for i, y := range b.y {
			s.center[i] = theta * y
		}
	}
	return found
}

// tree finds the most valuable filling of the bin that a knapsack describes,
// depth first, with the prices of the knapsack's relaxation to tell what the
// rest of the items can add.
type tree struct {
	ks        *knapsack
	order     []int
	rest      []float64 // by place in order, the profit of all items from there on
	free      []float64
	now, most []int
	best      float64
	nodes     int
	limit     int
	cut       bool // whether a search ended before its time
}

// The search of one filling ends after fewNodes, and the relaxation's value
// counts; where that is all that is between the bound and the program, it ends
// after more than mostNodes.
const (
	fewNodes  = 4_000
	mostNodes = 100_000
)

// fill returns a value that no filling exceeds, though it may be up to least even
// when all are worth less; most is the best filling worth more than least, if
// there is any.
func (t *tree) fill(least float64) float64 {
	k := t.ks
	n, d := len(k.class), k.d
	k.solve()
	relaxed := k.bound(k.pi)
	t.now, t.most, t.rest = resize(t.now, n), resize(t.most, n), resize(t.rest, n+1)
	clear(t.now)
	clear(t.most)
	t.order = t.order[:0]
	for j := range n {
		t.order = append(t.order, j)
	}
	t.best, t.nodes = least, 0
	if relaxed <= least {
		return relaxed
	}
	profit := make([]float64, n)
	for j := range profit {
		profit[j] = k.value[j]
		for q, s := range k.size[j*d : j*d+d] {
			profit[j] -= max(0, k.pi[q]) * s
		}
	}
	slices.SortStableFunc(t.order, func(a, b int) int {
		x, y := profit[a]/k.value[a], profit[b]/k.value[b]
		if x > y {
			return -1
		}
		if x < y {
			return 1
		}
		return 0
	})
	t.rest[n] = 0
	for at := n - 1; at >= 0; at-- {
		j := t.order[at]
		t.rest[at] = t.rest[at+1] + max(0, profit[j])*k.upper[j]
	}
	t.free = append(t.free[:0], k.cap...)
	t.search(0, 0)
	if t.nodes > t.limit {
		t.cut = true
		return relaxed
	}
	return min(relaxed, t.best*(1+1e-9))
}

func (t *tree) search(at int, worth float64) {
	if t.nodes++; t.nodes > t.limit {
		return
	}
	if worth > t.best {
		t.best = worth
		copy(t.most, t.now)
	}
	k := t.ks
	d := k.d
	for ; at < len(t.order); at++ {
		hope := worth + t.rest[at]
		for q, f := range t.free {
			hope += max(0, k.pi[q]) * f
		}
		if hope <= t.best*(1+1e-9) {
			return
		}
		j := t.order[at]
		size := k.size[j*d : j*d+d]
		n := k.upper[j]
		for q, s := range size {
			if s > 0 {
				// A filling that is too full by a rounding error is no harm: it
				// can only lower the bound.
				n = min(n, math.Floor(t.free[q]/s+1e-9))
			}
		}
		for ; n > 0; n-- {
			t.take(j, int(n), size, -n)
			t.search(at+1, worth+n*k.value[j])
			t.take(j, 0, size, n)
		}
	}
}

// take notes n items of j in the bin and changes the room by as many sizes.
func (t *tree) take(j, n int, size []float64, room float64) {
	t.now[j] = n
	for q, s := range size {
		t.free[q] += room * s
	}
}
