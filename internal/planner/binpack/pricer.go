package binpack

import "slices"

// pricing is what everything is worth when bins are filled.
type pricing struct {
	w     []float64 // by priced type and dimension, the price of a scaled unit of capacity
	cost  []float64 // by type, cost including the price of scarce limits
	value []float64 // by class, the worth of an item
	tight []int32   // types that are bought, the most wanted first
}

func (p pricing) clone() pricing {
	return pricing{slices.Clone(p.w), slices.Clone(p.cost), slices.Clone(p.value), slices.Clone(p.tight)}
}

// worth is the value of what is left.
func (p *pricing) worth(rem []int) float64 {
	v := 0.0
	for i, n := range rem {
		v += p.value[i] * float64(n)
	}
	return v
}

// pricer makes prices: by the fluid program first, by ascent of a sharper dual
// then.
type pricer struct {
	c    *core
	menu *menu
	fl   *fluid
	rf   *refiner
	// now are the prices in use, valid once price or adopt has been called.
	now pricing
	// era counts changes of now, which make fillings outdated.
	era int
	// steps are those of the fluid program; counted those that a meter knows of.
	steps, counted int64
}

func newPricer(m *menu) *pricer {
	c := m.c
	return &pricer{c: c, menu: m, fl: newFluid(m), rf: newRefiner(m),
		now: pricing{w: make([]float64, m.priced*c.d), cost: make([]float64, len(c.kinds)), value: make([]float64, len(c.classes))}}
}

// fork is a pricer at the same point for a worker beside this one. Its work is
// counted from zero. The two may refine at the same time, but not price.
func (p *pricer) fork() *pricer {
	return &pricer{c: p.c, menu: p.menu, fl: p.fl, rf: p.rf.clone(), now: p.now.clone()}
}

// work is the number of steps done so far.
func (p *pricer) work() int64 { return p.rf.steps + p.steps }

// account tells the meter of the work done since it was last told.
func (p *pricer) account(m *meter) {
	work := p.work()
	m.spend(work - p.counted)
	p.counted = work
}

// at are the prices in use of a type's dimensions.
func (p *pricer) at(t int32) []float64 { return p.now.w[p.menu.at(t):][:p.c.d] }

// price computes prices from nothing for rem items, by class, and what lim lets
// be bought.
func (p *pricer) price(rem []int, lim *limits) {
	p.fl.price(rem, lim)
	p.steps += p.fl.lp.steps
	pr, now, d := &p.fl.prices, &p.now, p.c.d
	for i := range p.c.classes {
		now.value[i] = pr.value(p.c, i)
	}
	clear(now.w)
	for t := range p.c.kinds {
		now.cost[t] = pr.fullCost(p.c, int32(t))
		if p.menu.slot[t] < 0 {
			continue
		}
		w := p.at(int32(t))
		for _, gr := range p.fl.taken[t] {
			for k, l := range pr.lambda[int(gr)*d : int(gr)*d+d] {
				w[k] = max(w[k], l)
			}
		}
	}
	p.rf.start(now.w, now.cost)
}

// refine improves the prices for what is left, in n steps at most and until that
// many in a row were in vain.
func (p *pricer) refine(rem []int, n, patience int, whole bool) {
	p.rf.best.total = -1
	p.rf.climb(rem, p.now.cost, n, patience, whole)
	p.adopt()
}

// refineFor is refine within about work operations, but no fewer than least and no
// more than most steps, without the shares of the classes.
func (p *pricer) refineFor(rem []int, work, least, most int) {
	p.refine(rem, p.rf.afford(work, least, most), enduring, false)
}

// enduring is more steps than refine ever takes, hasty what is worth waiting for
// when a first packing is due: the prices of the fluid program are often as good
// as any that follow soon.
const (
	enduring = 1 << 30
	hasty    = 4
)

// adopt makes the refined prices the ones in use.
func (p *pricer) adopt() {
	copy(p.now.w[:len(p.menu.kinds)*p.c.d], p.rf.best.w)
	copy(p.now.value, p.rf.best.value)
	p.era++
	p.rank()
}

// refineSteps bounds the effort for the bound's prices after the first packing.
const refineSteps = 2e6

// bound prices all items of bd, quickly, leaves the prices in use, and proves a
// bound with them if that is wanted.
func (p *pricer) bound(bd *bounder, prove bool) {
	p.price(bd.count, p.c.newLimits())
	if prove && len(p.c.classes)*len(p.menu.kinds) <= worthwhile/8 {
		p.prove(bd)
	}
	p.refine(bd.count, p.rf.afford(100_000, 4, 20), hasty, true)
	if prove {
		p.prove(bd)
	}
}

// prove raises the bound of bd to what the prices in use imply.
func (p *pricer) prove(bd *bounder) { bd.prove(p.now.value, p.now.w, p.fl.prices.mu) }

// sharpen works on the bound for as long as that helps and the meter allows, and
// leaves its prices in use.
func (p *pricer) sharpen(bd *bounder, m *meter) {
	p.price(bd.count, p.c.newLimits())
	p.prove(bd)
	p.refine(bd.count, p.rf.afford(500_000, 4, 20), enduring, true)
	p.prove(bd)
	end := p.rf.steps + refineSteps
	for still := 0; still < 3 && p.rf.steps < end && !m.over(); {
		before := p.rf.best.total
		p.rf.climb(bd.count, p.now.cost, p.rf.afford(500_000, 4, 20), enduring, true)
		p.account(m)
		if still++; p.rf.best.total > before*(1+1e-5) {
			still = 0
		}
	}
	p.adopt()
	p.prove(bd)
	p.account(m)
}

// rank orders the types by how much of the demand prefers them: the cost of the
// bins that it would fill.
func (p *pricer) rank() {
	now := &p.now
	now.tight = append(now.tight[:0], p.menu.kinds...)
	sortBy(now.tight, func(t int32) float64 {
		v, o := 0.0, p.menu.at(t)
		for k, u := range p.rf.use[o : o+p.c.d] {
			v -= u * p.rf.share[o+k]
		}
		return v * now.cost[t]
	})
}
