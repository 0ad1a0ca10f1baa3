package binpack

import "math"

// crew is a group of items of which a bin holds only so many whatever its size:
// those of a class with a cap, of classes in conflict, or of whatever has a size
// in a dimension of which every kind has the same.
type crew struct {
	members []member
	seed    int32
	limit   float64 // what a bin should cost at most, when trials were last listed
}

// member is a class of a crew.
type member struct {
	class int32
	part  float64 // of what a bin holds of the crew, that one item takes
}

// A crew matters when the bins that it needs could cost this part of everything
// beyond what its items are worth.
const crewMatters = 0.02

// crewOf finds the crew whose bins would cost most if nothing else were put in
// them.
func (g *greedy) crewOf(p *packing) crew {
	c, rem := g.c, p.rem
	var best []member
	most := crewMatters * g.prices.now.worth(p.rem)
	try := func(members []member) {
		cost := 0.0
		for _, m := range members {
			if n := float64(rem[m.class]); n > 0 {
				cost += n * max(0, m.part*float64(c.cheapestFor(&c.classes[m.class]))-g.prices.now.value[m.class])
			}
		}
		if cost > most {
			best, most = members, cost
		}
	}
	conflicts := make([][]member, c.nconf)
	for i := range c.classes {
		cl := &c.classes[i]
		if cl.perBin == math.MaxInt || rem[i] == 0 {
			continue
		}
		m := member{int32(i), 1 / float64(cl.perBin)}
		try([]member{m})
		for _, id := range cl.conf {
			conflicts[id] = append(conflicts[id], m)
		}
	}
	for _, members := range conflicts {
		try(members)
	}
	for d := range c.d {
		if len(c.buyable) == 0 || c.varies[d] {
			continue
		}
		var members []member
		for i := range c.classes {
			if size := c.classes[i].size[d]; size > 0 {
				members = append(members, member{int32(i), float64(size) / float64(c.kinds[c.buyable[0]].cap[d])})
			}
		}
		try(members)
	}
	return crew{members: best, seed: -1}
}

// bins is how many bins the rest of the crew needs.
func (w *crew) bins(rem []int) float64 {
	n := 0.0
	for _, m := range w.members {
		n += m.part * float64(rem[m.class])
	}
	return n
}

// roomy is how much dearer than what is left for each bin of a crew a bin may be.
const roomy = 1.5

// openForCrew buys a bin for the crew and fills it up, when its items would run
// out of company if the bins were as large as the prices alone suggest. It tells
// whether it bought any.
func (g *greedy) openForCrew(p *packing, r rule) bool {
	w := &g.crew
	n := w.bins(p.rem)
	if n < 1 {
		w.members = nil
		return false
	}
	limit := roomy * g.prices.now.worth(p.rem) / n
	if limit >= g.dearestOf(g.prices.now.tight[:min(fewKinds, len(g.prices.now.tight))]) {
		return false
	}
	if top := g.dearestLeft(p); top >= 0 && float64(g.c.cheapestFor(&g.c.classes[top])) > limit {
		return g.openFor(p, r) // not left to the end, when it would find no company
	}
	if w.seed < 0 || p.rem[w.seed] == 0 || g.hopeless.Has(int(w.seed)) {
		if w.seed = g.seedOf(w, p); w.seed < 0 {
			return false
		}
	}
	if limit > w.limit*1.1 || limit < w.limit/1.1 {
		w.limit = limit // it changes seldom, as that makes all trials outdated
	}
	best := g.fillings.pick(p, g.trialsFor(p, w.seed, r, w.limit), g.round, w.seed, r)
	if best < 0 {
		return false
	}
	g.buy(p, best, &g.round[best])
	return true
}

// dearestOf is the highest price of the kinds.
func (g *greedy) dearestOf(kinds []int32) float64 {
	most := 0.0
	for _, t := range kinds {
		most = max(most, g.prices.now.cost[t])
	}
	return most
}

// seedOf is the member whose items are worth least: they need company most. It is
// -1 when none is left.
func (g *greedy) seedOf(w *crew, p *packing) int32 {
	least := int32(-1)
	for _, m := range w.members {
		if p.rem[m.class] > 0 && !g.hopeless.Has(int(m.class)) && (least < 0 || g.prices.now.value[m.class] < g.prices.now.value[least]) {
			least = m.class
		}
	}
	return least
}
