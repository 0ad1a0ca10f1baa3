package binpack

// recreator packs the items of a pool into bins: the repair of ruin and recreate.
type recreator struct {
	c       *core
	menu    *menu
	prices  pricing
	fill    *filler
	pool    pool
	made    []filled  // the bins made in this trial
	arena   []content // their contents
	views   []*view   // by type and rule
	attempt []content // the best filling that best has found, in order of arrival
}

// filled is a bin made in a trial; its contents are arena[from:to].
type filled struct {
	kind     int32
	from, to int
}

func newRecreator(m *menu, pr pricing) *recreator {
	return &recreator{c: m.c, menu: m, prices: pr, fill: newFiller(m.c), pool: newPool(m.c, pr.value), views: make([]*view, bigs*len(m.c.kinds))}
}

// begin forgets the bins of the last trial.
func (e *recreator) begin() { e.made, e.arena = e.made[:0], e.arena[:0] }

// items are the contents of a bin made in this trial.
func (e *recreator) items(o filled) []content { return e.arena[o.from:o.to] }

// cost is the cost of the bins made in this trial.
func (e *recreator) cost() int64 {
	cost := int64(0)
	for _, o := range e.made {
		cost += e.c.kinds[o.kind].cost
	}
	return cost
}

// recreate packs the pool into bins that cost less than target together, and tells
// whether it could. It counts the bins towards lim. chosen are the types of the
// bins that were taken apart.
func (e *recreator) recreate(target float64, chosen []int32, lim *limits, rng *random) bool {
	spent := 0.0
	for {
		left, empty := e.pool.weigh(e.prices.value)
		if empty {
			return spent < target*(1-1e-9)
		}
		if spent+left >= target*(1-1e-9) {
			return false
		}
		if t := e.whole(target-spent, lim); t >= 0 {
			e.fill.bin.begin(t)
			e.pool.putAll(&e.fill.bin)
			e.close(t, lim)
			return true
		}
		t := e.best(target-spent, chosen, lim, rng)
		if t < 0 {
			return false
		}
		e.fill.bin.begin(t)
		e.fill.bin.putAll(e.attempt)
		e.close(t, lim)
		spent += e.prices.cost[t]
	}
}

// close moves what the open bin holds from the pool to the bins made.
func (e *recreator) close(t int32, lim *limits) {
	from := len(e.arena)
	e.arena = e.fill.bin.appendContents(e.arena)
	for _, it := range e.arena[from:] {
		e.pool.rem[it.class] -= int(it.n)
	}
	e.made = append(e.made, filled{t, from, len(e.arena)})
	lim.open(t, 1)
}

// whole returns the cheapest type that holds all of the pool and costs less than
// limit, or -1. The pool has been weighed.
func (e *recreator) whole(limit float64, lim *limits) int32 {
	for _, t := range e.c.buyable {
		if e.prices.cost[t] >= limit*(1-1e-9) || !fits(e.pool.load, e.c.kinds[t].cap) || lim.room(t) == 0 {
			continue
		}
		if e.pool.fitsOne(t, &e.fill.bin) {
			return t
		}
	}
	return -1
}

// best fills a few types of bins and leaves the filling with the most value per
// dollar in attempt. It returns its type, or -1.
func (e *recreator) best(limit float64, chosen []int32, lim *limits, rng *random) int32 {
	f, now := e.fill, &e.prices
	ratio, kind := 0.0, int32(-1)
	for a := range 3 {
		var t int32
		switch a {
		case 0:
			t = e.menu.listed[chosen[rng.below(len(chosen))]]
		case 1:
			t = now.tight[rng.below(min(6, len(now.tight)))]
		default:
			t = now.tight[rng.below(len(now.tight))]
		}
		if now.cost[t] >= limit || lim.room(t) == 0 {
			continue
		}
		big := rng.below(bigs)
		r := rule{big: float64(big) / (bigs - 1), noise: 0.2}
		f.bin.begin(t)
		classes := e.pool.admitted(t)
		f.fill(e.viewOf(t, big), classes, e.pool.rem, now.w[e.menu.at(t):][:e.c.d], now.value, r, rng)
		if len(f.bin.touched) == 0 {
			continue
		}
		f.polish(classes, e.pool.rem, now.value, 2)
		if v := f.bin.worthOf(now.value) / now.cost[t] * (1 + 0.01*rng.float()); v > ratio {
			ratio, kind = v, t
			e.attempt = f.bin.appendContents(e.attempt[:0])
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
func (e *recreator) viewOf(t int32, big int) *view {
	if len(e.menu.kinds)*bigs*len(e.c.classes) > mostViews {
		return nil
	}
	v := &e.views[int(t)*bigs+big]
	if *v == nil {
		*v = newView(e.c)
		(*v).era = 1
	}
	return *v
}
