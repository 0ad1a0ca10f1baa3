package construct

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
)

// cappedGroup is a group of items of which a bin holds only so many whatever its size:
// those of a class with a cap, of classes in conflict, or of whatever has a size
// in a dimension of which every type has the same.
type cappedGroup struct {
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
const cappedMatters = 0.02

// cappedGroupOf finds the crew whose bins would cost most if nothing else were put in
// them.
func (g *Builder) cappedGroupOf(p *reduced.Packing) cappedGroup {
	c, rem := g.c, p.Remaining
	var best []member
	most := cappedMatters * g.Pricer.Now.Worth(p.Remaining)
	try := func(members []member) {
		cost := 0.0
		for _, m := range members {
			if n := float64(rem[m.class]); n > 0 {
				cost += n * max(0, m.part*float64(c.CheapestFor(&c.Classes[m.class]))-g.Pricer.Now.Value[m.class])
			}
		}
		if cost > most {
			best, most = members, cost
		}
	}
	conflicts := make([][]member, c.ConflictIDs)
	for i := range c.Classes {
		cl := &c.Classes[i]
		if cl.PerBin == math.MaxInt || rem[i] == 0 {
			continue
		}
		m := member{int32(i), 1 / float64(cl.PerBin)}
		try([]member{m})
		for _, id := range cl.Conflicts {
			conflicts[id] = append(conflicts[id], m)
		}
	}
	for _, members := range conflicts {
		try(members)
	}
	for d := range c.Dims {
		if len(c.Buyable) == 0 || c.Varies[d] {
			continue
		}
		var members []member
		for i := range c.Classes {
			if size := c.Classes[i].Size[d]; size > 0 {
				members = append(members, member{int32(i), float64(size) / float64(c.Types[c.Buyable[0]].Capacity[d])})
			}
		}
		try(members)
	}
	return cappedGroup{members: best, seed: -1}
}

// bins is how many bins the rest of the crew needs.
func (w *cappedGroup) bins(rem []int) float64 {
	n := 0.0
	for _, m := range w.members {
		n += m.part * float64(rem[m.class])
	}
	return n
}

// roomy is how much dearer than what is left for each bin of a crew a bin may be.
const roomy = 1.5

// openForCapped buys a bin for the group and fills it up, when its items would have too
// few other items to share bins with if the bins were as large as the prices alone suggest. It tells
// whether it bought any.
func (g *Builder) openForCapped(p *reduced.Packing, r Rule) bool {
	w := &g.capped
	n := w.bins(p.Remaining)
	if n < 1 {
		w.members = nil
		return false
	}
	limit := roomy * g.Pricer.Now.Worth(p.Remaining) / n
	if limit >= g.dearestOf(g.Pricer.Now.Tight[:min(fewKinds, len(g.Pricer.Now.Tight))]) {
		return false
	}
	if top := g.dearestLeft(p); top >= 0 && float64(g.c.CheapestFor(&g.c.Classes[top])) > limit {
		return g.openFor(p, r) // not left to the end, when no other items would share its bins
	}
	if w.seed < 0 || p.Remaining[w.seed] == 0 || g.hopeless.Has(int(w.seed)) {
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

// dearestOf is the highest price of the types.
func (g *Builder) dearestOf(kinds []int32) float64 {
	most := 0.0
	for _, t := range kinds {
		most = max(most, g.Pricer.Now.Cost[t])
	}
	return most
}

// seedOf is the member whose items are worth least: they need other items in their bin most. It is
// -1 when none is left.
func (g *Builder) seedOf(w *cappedGroup, p *reduced.Packing) int32 {
	least := int32(-1)
	for _, m := range w.members {
		if p.Remaining[m.class] > 0 && !g.hopeless.Has(int(m.class)) && (least < 0 || g.Pricer.Now.Value[m.class] < g.Pricer.Now.Value[least]) {
			least = m.class
		}
	}
	return least
}
