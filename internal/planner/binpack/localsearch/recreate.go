package localsearch

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// recreator packs the items of a pool into bins: the repair of ruin and recreate.
type recreator struct {
	c       *reduced.Problem
	list    *reduced.Shortlist
	prices  bound.Prices
	fill    *construct.Filler
	pool    pool
	made    []filled          // the bins made in this trial
	arena   []reduced.Content // their contents
	views   []*construct.View // by type and rule
	attempt []reduced.Content // the best filling that best has found, in order of arrival
}

// filled is a bin made in a trial; its contents are arena[from:to].
type filled struct {
	binType  int32
	from, to int
}

func newRecreator(m *reduced.Shortlist, pr bound.Prices) *recreator {
	return &recreator{c: m.Problem, list: m, prices: pr, fill: construct.NewFiller(m.Problem),
		pool: newPool(m.Problem, pr.Value), views: make([]*construct.View, bigs*len(m.Problem.Types))}
}

// begin forgets the bins of the last trial.
func (e *recreator) begin() { e.made, e.arena = e.made[:0], e.arena[:0] }

// items are the contents of a bin made in this trial.
func (e *recreator) items(o filled) []reduced.Content { return e.arena[o.from:o.to] }

// cost is the cost of the bins made in this trial.
func (e *recreator) cost() int64 {
	cost := int64(0)
	for _, o := range e.made {
		cost += e.c.Types[o.binType].Cost
	}
	return cost
}

// recreate packs the pool into bins that cost less than target together, and tells
// whether it could. It counts the bins towards lim. chosen are the types of the
// bins that were taken apart.
func (e *recreator) recreate(target float64, chosen []int32, lim *reduced.Limits, rng *reduced.RNG) bool {
	spent := 0.0
	for {
		left, empty := e.pool.weigh(e.prices.Value)
		if empty {
			return spent < target*(1-1e-9)
		}
		if spent+left >= target*(1-1e-9) {
			return false
		}
		if t := e.whole(target-spent, lim); t >= 0 {
			e.fill.Bin.Begin(t)
			e.pool.putAll(&e.fill.Bin)
			e.close(t, lim)
			return true
		}
		t := e.best(target-spent, chosen, lim, rng)
		if t < 0 {
			return false
		}
		e.fill.Bin.Begin(t)
		e.fill.Bin.PutAll(e.attempt)
		e.close(t, lim)
		spent += e.prices.Cost[t]
	}
}

// close moves what the open bin holds from the pool to the bins made.
func (e *recreator) close(t int32, lim *reduced.Limits) {
	from := len(e.arena)
	e.arena = e.fill.Bin.AppendContents(e.arena)
	for _, it := range e.arena[from:] {
		e.pool.rem[it.Class] -= int(it.Count)
	}
	e.made = append(e.made, filled{t, from, len(e.arena)})
	lim.Open(t, 1)
}

// whole returns the cheapest type that holds all of the pool and costs less than
// limit, or -1. The pool has been weighed.
func (e *recreator) whole(limit float64, lim *reduced.Limits) int32 {
	for _, t := range e.c.Buyable {
		if e.prices.Cost[t] >= limit*(1-1e-9) || !reduced.Fits(e.pool.load, e.c.Types[t].Capacity) || lim.Room(t) == 0 {
			continue
		}
		if e.pool.fitsOne(t, &e.fill.Bin) {
			return t
		}
	}
	return -1
}

// best fills a few types of bins and leaves the filling with the most value per
// dollar in attempt. It returns its type, or -1.
func (e *recreator) best(limit float64, chosen []int32, lim *reduced.Limits, rng *reduced.RNG) int32 {
	f, now := e.fill, &e.prices
	ratio, kind := 0.0, int32(-1)
	for a := range 3 {
		var t int32
		switch a {
		case 0:
			t = e.list.StandIn[chosen[rng.Below(len(chosen))]]
		case 1:
			t = now.Tight[rng.Below(min(6, len(now.Tight)))]
		default:
			t = now.Tight[rng.Below(len(now.Tight))]
		}
		if now.Cost[t] >= limit || lim.Room(t) == 0 {
			continue
		}
		big := rng.Below(bigs)
		r := construct.Rule{Big: float64(big) / (bigs - 1), Noise: 0.2}
		f.Bin.Begin(t)
		classes := e.pool.admitted(t)
		f.Fill(e.viewOf(t, big), classes, e.pool.rem, now.Capacity[e.list.At(t):][:e.c.Dims], now.Value, r, rng)
		if len(f.Bin.Touched) == 0 {
			continue
		}
		f.Polish(classes, e.pool.rem, now.Value, 2)
		if v := f.Bin.WorthOf(now.Value) / now.Cost[t] * (1 + 0.01*rng.Float()); v > ratio {
			ratio, kind = v, t
			e.attempt = f.Bin.AppendContents(e.attempt[:0])
		}
	}
	return kind
}

// bigs is how many rules the search chooses from.
const bigs = 5

// mostViews is how many opinions of a type on a class the search keeps at most.
const mostViews = 150_000

// viewOf is how type t sees the items by the rule of that number, if there is
// room to remember it.
func (e *recreator) viewOf(t int32, big int) *construct.View {
	if len(e.list.Types)*bigs*len(e.c.Classes) > mostViews {
		return nil
	}
	v := &e.views[int(t)*bigs+big]
	if *v == nil {
		*v = construct.NewView(e.c)
		(*v).Era = 1
	}
	return *v
}
