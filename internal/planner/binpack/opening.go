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
	if g.retry.skip > 0 {
		g.retry.skip--
	} else {
		tight := g.prices.now.tight
		n := len(tight)
		if g.open(p, tight[:min(fewKinds, n)], r, wellDone) || g.open(p, tight[:min(someKinds, n)], r, 0.8) {
			g.retry.failed = 0
			return true
		}
		g.retry.fail()
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
		if best := g.fillings.pick(p, g.trialsFor(p, seed, r, math.Inf(1)), g.round, seed, r); best >= 0 {
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
		if n > 0 && !g.hopeless.Has(i) && (dearest < 0 || g.prices.now.value[i] > g.prices.now.value[dearest]) {
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
	closed := func(t int32) bool { return p.lim.room(t) == 0 }
	l := &g.trials
	if l.seed == seed && l.era == g.prices.era && l.limit == limit && !slices.ContainsFunc(l.kinds, closed) {
		return l.kinds
	}
	*l = trials{seed, g.prices.era, limit, l.kinds[:0]}
	best, worse := 0.0, 0
	for _, t := range g.menu.kinds {
		if g.prices.now.cost[t] > limit && len(l.kinds) > 0 {
			break
		}
		if closed(t) || !c.canHold(&c.kinds[t], &c.classes[seed]) {
			continue
		}
		g.fillings.refill(p.rem, t, &g.round[t], seed, r)
		l.kinds = append(l.kinds, t)
		// When it is conflicts that keep others out, a larger bin is no use.
		alone := len(g.round[t].items) == 1 && len(c.classes[seed].conf) > 0
		if worse++; g.round[t].ratio > best {
			best, worse = g.round[t].ratio, 0
		}
		if len(l.kinds) == someKinds || worse == giveUp || alone || g.round[t].ratio >= wellDone {
			break
		}
	}
	return l.kinds
}

// buy buys bins of kind t with a filling, three quarters as often as possible: so
// the mix of what remains stays in balance.
func (g *greedy) buy(p *packing, t int32, fl *filling) {
	items := slices.Clone(fl.items)
	slices.SortFunc(items, func(a, b content) int { return int(a.class) - int(b.class) })
	p.buy(t, items, (3*p.repeats(t, items)+3)/4)
}

// open buys the filling with the most value per dollar among the kinds,
// if it reaches the ratio enough, and tells whether it bought any.
func (g *greedy) open(p *packing, kinds []int32, r rule, enough float64) bool {
	best := g.fillings.pick(p, kinds, g.made, -1, r)
	if best < 0 || g.made[best].ratio < enough {
		return false
	}
	g.buy(p, best, &g.made[best])
	return true
}
