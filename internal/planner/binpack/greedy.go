package binpack

import "slices"

// greedy is the constructive packer: it opens one bin after the other.
type greedy struct {
	c    *core
	fl   *fluid
	rf   *refiner
	fill *filler
	pricing
	made     []filling // by kind, the last filling
	round    []filling // by kind, the last filling round an item of class seed
	seed     int32
	trials   []int32   // the kinds that are worth a try for seed
	tried    int       // the era of trials
	upTo     float64   // what trials should cost at most
	views    []*view   // by kind, those that were filled
	live     [][]int32 // by column, the classes of which some items were left when prices were last refined
	era      int       // counts changes of prices, which make fillings outdated
	cands    []int32
	load     []int64
	rng      random
	skip     int // bins to open before looking for well filled ones again
	failed   int // how often that failed in a row
	crew     crew
	hopeless Bitset // classes for which no bin may be bought any more
	steps    int64
	counted  int64 // steps that the meter knows of
}

// pricing is what everything is worth to those who fill bins.
type pricing struct {
	w     []float64 // by priced kind and dimension, the price of a scaled unit of capacity
	cost  []float64 // by kind, cost including the price of scarce limits
	value []float64 // by class, the worth of an item
	tight []int32   // kinds that are bought, the most wanted first
}

func (p pricing) clone() pricing {
	return pricing{slices.Clone(p.w), slices.Clone(p.cost), slices.Clone(p.value), slices.Clone(p.tight)}
}

func newGreedy(c *core, seed uint64) *greedy {
	return &greedy{
		c: c, fl: newFluid(c), rf: newRefiner(c), fill: newFiller(c), rng: random(seed),
		pricing: pricing{w: make([]float64, c.priced*c.d), cost: make([]float64, len(c.kinds)), value: make([]float64, len(c.classes))},
		live:    make([][]int32, len(c.cols)), load: make([]int64, c.d),
	}
}

// Which items go first makes all the difference, and which way is better
// depends on how many fit in the bins: firstRule is good in most cases, and
// otherRules are tried when it was not.
var (
	firstRule  = rule{big: 0.2}
	otherRules = [...]rule{{big: 0.5}, {big: 0}, {big: 1}}
)

// goodEnough is the gap to the bound at which no other rule is tried.
const goodEnough = 0.021

// alternatives packs everything again by other rules, if p is far from the
// bound, and returns the best packing.
func (g *greedy) alternatives(p *packing, rules []rule, bd *bounder, m *meter) *packing {
	end := m.steps + m.limit/8
	for _, r := range rules {
		if m.over() || m.steps > end || p.left() > 0 || float64(p.cost) <= bd.best*(1+goodEnough) {
			break
		}
		q := g.c.newPacking()
		if g.construct(q, r, m) && q.betterThan(g.c, p) {
			p = q
		}
	}
	return p
}

// construct prices what is left in p and packs it. It returns false if m, which
// may be nil, stopped it.
func (g *greedy) construct(p *packing, r rule, m *meter) bool {
	g.price(p)
	g.refine(p, g.rf.afford(400_000, 4, 12), enduring, false)
	return g.build(p, r, m)
}

// Prices follow the demand: again whenever no more than this part of it is left,
// more often when there is time for it.
const (
	rarely = 0.65
	often  = 0.85
)

// build packs what is left in p by the prices at hand.
func (g *greedy) build(p *packing, r rule, m *meter) bool {
	if g.views == nil { // whoever only proves a bound fills nothing
		n := len(g.c.kinds)
		g.made, g.round, g.views = make([]filling, n), make([]filling, n), make([]*view, n)
	}
	g.soften(p.rem)
	g.fillFixed(p, r)
	g.skip, g.failed, g.hopeless = 0, 0, NewBitset(len(g.c.classes))
	g.crew = g.crewOf(p)
	g.era++
	g.prune(p)
	worth, part := g.worth(p), rarely
	if m != nil {
		part = often
	}
	for p.left() > 0 {
		if now := g.worth(p); now < part*worth {
			g.refine(p, g.rf.afford(150_000, 2, 3), enduring, false)
			g.soften(p.rem)
			g.prune(p)
			worth = g.worth(p)
		}
		if !g.next(p, r) {
			break
		}
		if m != nil {
			g.account(m)
			if m.over() {
				return false
			}
		}
	}
	g.shrink(p)
	return true
}

// prune forgets the classes of which nothing is left.
func (g *greedy) prune(p *packing) {
	for i := range g.live {
		g.live[i] = g.live[i][:0]
		for _, class := range g.c.cols[i].classes {
			if p.rem[class] > 0 {
				g.live[i] = append(g.live[i], class)
			}
		}
	}
}

// account tells the meter of the work done since it was last told.
func (g *greedy) account(m *meter) {
	work := g.fill.steps + g.rf.steps + g.steps
	m.spend(work - g.counted)
	g.counted = work
}

// worth is the value of what is left in p.
func (g *greedy) worth(p *packing) float64 {
	v := 0.0
	for i, n := range p.rem {
		v += g.value[i] * float64(n)
	}
	return v
}

// price computes prices for what is left from nothing.
func (g *greedy) price(p *packing) {
	g.fl.price(p.rem, p.lim)
	g.steps += g.fl.lp.steps
	pr := &g.fl.prices
	for i := range g.c.classes {
		g.value[i] = pr.value(g.c, i)
	}
	clear(g.w)
	for t := range g.c.kinds {
		g.cost[t] = g.c.fullCost(int32(t), pr)
		if g.c.slot[t] < 0 {
			continue
		}
		w := g.w[g.c.at(int32(t)):][:g.c.d]
		for _, gr := range g.fl.taken[t] {
			for d, l := range pr.lambda[int(gr)*g.c.d : int(gr)*g.c.d+g.c.d] {
				w[d] = max(w[d], l)
			}
		}
	}
	g.rf.start(g.w, g.cost)
}

// refine improves the prices for what is left, in n steps at most and until that
// many in a row were in vain.
func (g *greedy) refine(p *packing, n, patience int, whole bool) {
	g.rf.total = -1
	g.rf.climb(p.rem, g.cost, n, patience, whole)
	g.adopt()
}

// enduring is more steps than refine ever takes, hasty what is worth waiting for
// when a first packing is due: the prices of the fluid program are often as good
// as any that follow soon.
const (
	enduring = 1 << 30
	hasty    = 4
)

// adopt makes the refined prices the ones in use.
func (g *greedy) adopt() {
	copy(g.w[:len(g.c.menu)*g.c.d], g.rf.bestW)
	copy(g.value, g.rf.bestV)
	g.era++
	g.rank()
}

// refineSteps bounds the effort for the bound's prices after the first packing.
const refineSteps = 2e6

// bound prices all items of bd, quickly, leaves the prices in use, and proves a
// bound with them if that is wanted.
func (g *greedy) bound(bd *bounder, prove bool) {
	all := &packing{rem: bd.count, lim: g.c.newLimits()}
	g.price(all)
	if prove && len(g.c.classes)*len(g.c.menu) <= worthwhile/8 {
		bd.prove(g.value, g.w, g.fl.prices.mu)
	}
	g.refine(all, g.rf.afford(100_000, 4, 20), hasty, true)
	if prove {
		bd.prove(g.value, g.w, g.fl.prices.mu)
	}
}

// sharpen works on the bound for as long as that helps and the meter allows, and
// leaves its prices in use.
func (g *greedy) sharpen(bd *bounder, m *meter) {
	all := &packing{rem: bd.count, lim: g.c.newLimits()}
	g.price(all)
	bd.prove(g.value, g.w, g.fl.prices.mu)
	g.refine(all, g.rf.afford(500_000, 4, 20), enduring, true)
	bd.prove(g.value, g.w, g.fl.prices.mu)
	end := g.rf.steps + refineSteps
	for still := 0; still < 3 && g.rf.steps < end && !m.over(); {
		before := g.rf.total
		g.rf.climb(all.rem, g.cost, g.rf.afford(500_000, 4, 20), enduring, true)
		g.account(m)
		if still++; g.rf.total > before*(1+1e-5) {
			still = 0
		}
	}
	g.adopt()
	bd.prove(g.value, g.w, g.fl.prices.mu)
	g.account(m)
}

// rank orders the kinds by how much of the demand prefers them.
func (g *greedy) rank() {
	c := g.c
	g.tight = append(g.tight[:0], c.menu...)
	sortBy(g.tight, func(t int32) float64 {
		v, o := 0.0, c.at(t)
		for d, u := range g.rf.use[o : o+c.d] {
			v -= u * g.rf.share[o+d]
		}
		return v * g.cost[t]
	})
}

// fillFixed fills what exists already.
func (g *greedy) fillFixed(p *packing, r rule) {
	c := g.c
	for _, t := range c.fixed {
		g.cands = c.compatible(c.cols[c.kinds[t].col].sigs, g.cands[:0])
		for p.lim.room(c, t) > 0 {
			g.fill.begin(t)
			g.fill.fill(nil, g.cands, p.rem, g.w[c.at(t):][:c.d], g.value, r, &g.rng)
			if len(g.fill.touched) == 0 {
				break
			}
			p.buy(g.fill, t, p.repeats(g.fill, t))
		}
	}
}

// shrink replaces bins by cheaper ones that hold the same.
func (g *greedy) shrink(p *packing) {
	c := g.c
	for k := 0; k < len(p.patterns); k++ {
		pt := p.patterns[k]
		if c.kinds[pt.kind].fixed {
			continue
		}
		t := c.cheapest(pt.kind, pt.items, p.lim, g.load)
		if t == pt.kind {
			continue
		}
		n := min(pt.times, p.lim.room(c, t))
		p.lim.open(c, pt.kind, -n)
		p.lim.open(c, t, n)
		p.cost += int64(n) * (c.kinds[t].cost - c.kinds[pt.kind].cost)
		if n < pt.times {
			p.patterns = append(p.patterns, pattern{pt.kind, pt.times - n, pt.items})
		}
		p.patterns[k] = pattern{t, n, pt.items}
	}
}
