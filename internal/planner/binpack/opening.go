package binpack

import (
	"math"
	"slices"
)

// The greedy looks at few kinds for every bin, and at more only when none of
// them can be filled well. Round one item it gives up after some kinds in a row
// that are no better than a cheaper one: larger bins, which take longest to fill,
// seldom are.
const (
	fewKinds  = 3
	someKinds = 10
	wellDone  = 0.96
	giveUp    = 4
)

// next opens the next bin, and tells whether it found one to open. Looking for a
// bin that can be filled well is given up for a while, longer each time, when
// it fails again and again.
func (g *greedy) next(p *packing, r rule) bool {
	if len(g.crew.members) > 0 && g.openForCrew(p, r) {
		return true
	}
	if g.skip > 0 {
		g.skip--
	} else {
		n := len(g.tight)
		if g.open(p, g.tight[:min(fewKinds, n)], r, wellDone) || g.open(p, g.tight[:min(someKinds, n)], r, 0.8) {
			g.failed = 0
			return true
		}
		g.failed++
		g.skip = min(1<<g.failed, 64)
	}
	return g.openFor(p, r)
}

// openFor buys a bin for the class whose items are worth most, and fills it up.
func (g *greedy) openFor(p *packing, r rule) bool {
	for {
		seed := g.dearestLeft(p)
		if seed < 0 {
			return false
		}
		if best := g.pick(p, g.trialsFor(p, seed, r, math.Inf(1)), g.round, seed, r); best >= 0 {
			g.buy(p, best, &g.round[best])
			return true
		}
		g.hopeless.Set(int(seed))
	}
}

// dearestLeft is the class left whose items are worth most, or -1.
func (g *greedy) dearestLeft(p *packing) int32 {
	dearest := int32(-1)
	for i, n := range p.rem {
		if n > 0 && !g.hopeless.Has(i) && (dearest < 0 || g.value[i] > g.value[dearest]) {
			dearest = int32(i)
		}
	}
	return dearest
}

// trialsFor lists some kinds that an item of the class may be put in, the cheapest
// first and but for that none dearer than limit, all of them filled at the prices
// of now.
func (g *greedy) trialsFor(p *packing, seed int32, r rule, limit float64) []int32 {
	c := g.c
	closed := func(t int32) bool { return p.lim.room(c, t) == 0 }
	if g.seed == seed && g.tried == g.era && g.upTo == limit && !slices.ContainsFunc(g.trials, closed) {
		return g.trials
	}
	g.seed, g.tried, g.upTo, g.trials = seed, g.era, limit, g.trials[:0]
	best, worse := 0.0, 0
	for _, t := range c.menu {
		if g.cost[t] > limit && len(g.trials) > 0 {
			break
		}
		if closed(t) || !c.takes(&c.kinds[t], &c.classes[seed]) || !fits(c.classes[seed].size, c.kinds[t].cap) {
			continue
		}
		g.refill(p, t, &g.round[t], seed, r)
		g.trials = append(g.trials, t)
		// When it is conflicts that keep others out, a larger bin is no use.
		alone := len(g.round[t].items) == 1 && len(c.classes[seed].conf) > 0
		if worse++; g.round[t].ratio > best {
			best, worse = g.round[t].ratio, 0
		}
		if len(g.trials) == someKinds || worse == giveUp || alone || g.round[t].ratio >= wellDone {
			break
		}
	}
	return g.trials
}

// buy buys bins of kind t with a filling, three quarters as often as possible: so
// the mix of what remains stays in balance.
func (g *greedy) buy(p *packing, t int32, fl *filling) {
	g.fill.begin(t)
	for _, it := range fl.items {
		g.fill.put(it.class, int(it.n))
	}
	p.buy(g.fill, t, (3*p.repeats(g.fill, t)+3)/4)
}

// hopeful is up to how many times as much a filling may be worth when it is made
// anew as the last one of the same kind was at the same prices.
const hopeful = 1.15

// open buys the filling with the most value per dollar among the kinds,
// if it reaches the ratio enough, and tells whether it bought any.
func (g *greedy) open(p *packing, kinds []int32, r rule, enough float64) bool {
	best := g.pick(p, kinds, g.made, -1, r)
	if best < 0 || g.made[best].ratio < enough {
		return false
	}
	g.buy(p, best, &g.made[best])
	return true
}

// pick returns the kind whose filling, round an item of class seed if that is not
// negative, has the most value per dollar, or -1. As long as prices stay, what is
// left only shrinks, and a filling hardly gets better: a kind is filled anew only
// when it may come out best.
func (g *greedy) pick(p *packing, kinds []int32, made []filling, seed int32, r rule) int32 {
	for {
		best, hope := int32(-1), 0.0
		for _, t := range kinds {
			if p.lim.room(g.c, t) == 0 {
				continue
			}
			fl := &made[t]
			if fl.era != g.era {
				g.refill(p, t, fl, seed, r)
			}
			ratio := fl.ratio
			if !fl.possible(p) {
				ratio *= hopeful
			}
			if len(fl.items) > 0 && ratio > hope {
				best, hope = t, ratio
			}
		}
		if best < 0 || made[best].possible(p) {
			return best
		}
		g.refill(p, best, &made[best], seed, r)
	}
}

// possible tells whether there are enough items left for the filling.
func (f *filling) possible(p *packing) bool {
	for _, it := range f.items {
		if int(it.n) > p.rem[it.class] {
			return false
		}
	}
	return true
}

// viewOf is how kind t sees the items at the prices of now.
func (g *greedy) viewOf(t int32) *view {
	if g.views[t] == nil {
		g.views[t] = g.fill.newView()
	}
	g.views[t].era = int32(g.era)
	return g.views[t]
}

// filling is a way to fill a bin.
type filling struct {
	items []content
	ratio float64 // value per dollar
	era   int
}

// refill fills a bin of kind t with what is left, round an item of class seed if
// that is not negative.
func (g *greedy) refill(p *packing, t int32, fl *filling, seed int32, r rule) {
	c, f := g.c, g.fill
	f.begin(t)
	if seed >= 0 {
		f.put(seed, 1)
	}
	f.fill(g.viewOf(t), g.live[c.kinds[t].col], p.rem, g.w[c.at(t):][:c.d], g.value, r, &g.rng)
	fl.era, fl.items = g.era, fl.items[:0]
	for _, i := range f.touched {
		fl.items = append(fl.items, content{i, f.got[i]})
	}
	fl.ratio = (f.worthOf(g.value) + 1e-9) / (g.cost[t] + 1e-9)
}
