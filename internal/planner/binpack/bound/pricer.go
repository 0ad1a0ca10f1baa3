package bound

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Prices is what everything is worth when bins are filled.
type Prices struct {
	Capacity []float64 // by priced type and dimension, the price of a scaled unit of capacity
	Cost     []float64 // by type, cost including the price of scarce limits
	Value    []float64 // by class, the worth of an item
	Tight    []int32   // types that are bought, the most wanted first
}

// Clone is a copy that shares nothing with p.
func (p Prices) Clone() Prices {
	return Prices{slices.Clone(p.Capacity), slices.Clone(p.Cost), slices.Clone(p.Value), slices.Clone(p.Tight)}
}

// Worth is the value of what is left.
func (p *Prices) Worth(rem []int) float64 {
	v := 0.0
	for i, n := range rem {
		v += p.Value[i] * float64(n)
	}
	return v
}

// Pricer makes prices: by the fluid program first, by ascent of a sharper dual
// then.
type Pricer struct {
	C       *reduced.Problem
	List    *reduced.Shortlist
	fluid   *fluid
	refiner *refiner
	// now are the prices in use, valid once price or adopt has been called.
	Now Prices
	// era counts changes of now, which make fillings outdated.
	Era int
	// steps are those of the fluid program; counted those that a meter knows of.
	steps, counted int64
}

// NewPricer makes prices for the types on the list; there are none yet.
func NewPricer(m *reduced.Shortlist) *Pricer {
	c := m.Problem
	return &Pricer{C: c, List: m, fluid: newFluid(m), refiner: newRefiner(m),
		Now: Prices{Capacity: make([]float64, m.Priced*c.Dims), Cost: make([]float64, len(c.Types)), Value: make([]float64, len(c.Classes))}}
}

// Fork is a pricer at the same point for a worker beside this one. Its work is
// counted from zero. The two may refine at the same time, but not price.
func (p *Pricer) Fork() *Pricer {
	return &Pricer{C: p.C, List: p.List, fluid: p.fluid, refiner: p.refiner.clone(), Now: p.Now.Clone()}
}

// Work is the number of steps done so far.
func (p *Pricer) Work() int64 { return p.refiner.steps + p.steps }

// Account tells the meter of the work done since it was last told.
func (p *Pricer) Account(m *meter.Meter) {
	work := p.Work()
	m.Spend(work - p.counted)
	p.counted = work
}

// At are the prices in use of a type's dimensions.
func (p *Pricer) At(t int32) []float64 { return p.Now.Capacity[p.List.At(t):][:p.C.Dims] }

// Price computes prices from nothing for rem items, by class, and what lim lets
// be bought.
func (p *Pricer) Price(rem []int, lim *reduced.Limits) {
	p.fluid.price(rem, lim)
	p.steps += p.fluid.lp.steps
	pr, now, d := &p.fluid.prices, &p.Now, p.C.Dims
	for i := range p.C.Classes {
		now.Value[i] = pr.value(p.C, i)
	}
	clear(now.Capacity)
	for t := range p.C.Types {
		now.Cost[t] = pr.fullCost(p.C, int32(t))
		if p.List.Slot[t] < 0 {
			continue
		}
		w := p.At(int32(t))
		for _, gr := range p.fluid.taken[t] {
			for k, l := range pr.lambda[int(gr)*d : int(gr)*d+d] {
				w[k] = max(w[k], l)
			}
		}
	}
	p.refiner.start(now.Capacity, now.Cost)
}

// refine improves the prices for what is left, in n steps at most and until that
// many in a row were in vain.
func (p *Pricer) refine(rem []int, n, patience int, whole bool) {
	p.refiner.best.total = -1
	p.refiner.climb(rem, p.Now.Cost, n, patience, whole)
	p.adopt()
}

// RefineFor is refine within about work operations, but no fewer than least and no
// more than most steps, without the shares of the classes.
func (p *Pricer) RefineFor(rem []int, work, least, most int) {
	p.refine(rem, p.refiner.afford(work, least, most), enduring, false)
}

// enduring is more steps than refine ever takes, hasty what is worth waiting for
// when a first packing is due: the prices of the fluid program are often as good
// as any that follow soon.
const (
	enduring = 1 << 30
	hasty    = 4
)

// adopt makes the refined prices the ones in use.
func (p *Pricer) adopt() {
	copy(p.Now.Capacity[:len(p.List.Types)*p.C.Dims], p.refiner.best.w)
	copy(p.Now.Value, p.refiner.best.value)
	p.Era++
	p.rank()
}

// refineSteps bounds the effort for the bound's prices after the first packing.
const refineSteps = 2e6

// Bound prices all items of bd, quickly, leaves the prices in use, and proves a
// bound with them if that is wanted.
func (p *Pricer) Bound(bd *Bounder, prove bool) {
	p.Price(bd.count, p.C.NewLimits())
	if prove && len(p.C.Classes)*len(p.List.Types) <= worthwhile/8 {
		p.prove(bd)
	}
	p.refine(bd.count, p.refiner.afford(100_000, 4, 20), hasty, true)
	if prove {
		p.prove(bd)
	}
}

// prove raises the bound of bd to what the prices in use imply.
func (p *Pricer) prove(bd *Bounder) { bd.prove(p.Now.Value, p.Now.Capacity, p.fluid.prices.mu) }

// Sharpen works on the bound for as long as that helps and the meter allows, and
// leaves its prices in use.
func (p *Pricer) Sharpen(bd *Bounder, m *meter.Meter) {
	p.Price(bd.count, p.C.NewLimits())
	p.prove(bd)
	p.refine(bd.count, p.refiner.afford(500_000, 4, 20), enduring, true)
	p.prove(bd)
	end := p.refiner.steps + refineSteps
	for still := 0; still < 3 && p.refiner.steps < end && !m.Over(); {
		before := p.refiner.best.total
		p.refiner.climb(bd.count, p.Now.Cost, p.refiner.afford(500_000, 4, 20), enduring, true)
		p.Account(m)
		if still++; p.refiner.best.total > before*(1+1e-5) {
			still = 0
		}
	}
	p.adopt()
	p.prove(bd)
	p.Account(m)
}

// rank orders the types by how much of the demand prefers them: the cost of the
// bins that it would fill.
func (p *Pricer) rank() {
	now := &p.Now
	now.Tight = append(now.Tight[:0], p.List.Types...)
	reduced.SortBy(now.Tight, func(t int32) float64 {
		v, o := 0.0, p.List.At(t)
		for k, u := range p.refiner.use[o : o+p.C.Dims] {
			v -= u * p.refiner.share[o+k]
		}
		return v * now.Cost[t]
	})
}
