package construct

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// The greedy looks at few types for every bin, and at more only when none of
// them can be filled well. Round one item it gives up after some types in a row
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
func (g *Builder) next(p *reduced.Packing, r Rule) bool {
	if len(g.capped.members) > 0 && g.openForCapped(p, r) {
		return true
	}
	if g.retry.skip > 0 {
		g.retry.skip--
	} else {
		tight := g.Pricer.Now.Tight
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
func (g *Builder) openFor(p *reduced.Packing, r Rule) bool {
	for {
		seed := g.dearestLeft(p)
		if seed < 0 {
			return false
		}
		if best := g.fillings.pick(p, g.trialsFor(p, seed, r, math.Inf(1)), g.round, seed, r); best >= 0 {
			g.buy(p, best, &g.round[best])
			return true
		}
		g.hopeless.Add(int(seed))
	}
}

// dearestLeft is the class left whose items are worth most, or -1.
func (g *Builder) dearestLeft(p *reduced.Packing) int32 {
	dearest := int32(-1)
	for i, n := range p.Remaining {
		if n > 0 && !g.hopeless.Has(i) && (dearest < 0 || g.Pricer.Now.Value[i] > g.Pricer.Now.Value[dearest]) {
			dearest = int32(i)
		}
	}
	return dearest
}

// trialsFor lists some types that an item of the class may be put in, the cheapest
// first and but for that none dearer than limit, all of them filled at the prices
// of now.
func (g *Builder) trialsFor(p *reduced.Packing, seed int32, r Rule, limit float64) []int32 {
	c := g.c
	closed := func(t int32) bool { return p.Limits.Room(t) == 0 }
	l := &g.trials
	if l.seed == seed && l.era == g.Pricer.Era && l.limit == limit && !slices.ContainsFunc(l.types, closed) {
		return l.types
	}
	*l = trials{seed, g.Pricer.Era, limit, l.types[:0]}
	best, worse := 0.0, 0
	for _, t := range g.List.Types {
		if g.Pricer.Now.Cost[t] > limit && len(l.types) > 0 {
			break
		}
		if closed(t) || !c.CanHold(&c.Types[t], &c.Classes[seed]) {
			continue
		}
		g.fillings.refill(p.Remaining, t, &g.round[t], seed, r)
		l.types = append(l.types, t)
		// When it is conflicts that keep others out, a larger bin is no use.
		alone := len(g.round[t].items) == 1 && len(c.Classes[seed].Conflicts) > 0
		if worse++; g.round[t].ratio > best {
			best, worse = g.round[t].ratio, 0
		}
		if len(l.types) == someKinds || worse == giveUp || alone || g.round[t].ratio >= wellDone {
			break
		}
	}
	return l.types
}

// buy buys bins of type t with a filling, three quarters as often as possible: so
// the mix of what remains stays in balance.
func (g *Builder) buy(p *reduced.Packing, t int32, fl *filling) {
	items := slices.Clone(fl.items)
	slices.SortFunc(items, func(a, b reduced.Content) int { return int(a.Class) - int(b.Class) })
	p.Buy(t, items, (3*p.Repeats(t, items)+3)/4)
}

// open buys the filling with the most value per dollar among the types,
// if it reaches the ratio enough, and tells whether it bought any.
func (g *Builder) open(p *reduced.Packing, kinds []int32, r Rule, enough float64) bool {
	best := g.fillings.pick(p, kinds, g.made, -1, r)
	if best < 0 || g.made[best].ratio < enough {
		return false
	}
	g.buy(p, best, &g.made[best])
	return true
}
