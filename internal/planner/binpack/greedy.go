package binpack

// greedy is the constructive packer: it opens one bin after the other.
type greedy struct {
	c        *core
	menu     *menu
	prices   *pricer
	fillings fillings
	// made are, by type, the last fillings; round are those round an item of class
	// trials.seed. Both are nil until the first build.
	made, round []filling
	trials      trials
	retry       backoff
	crew        crew
	// hopeless are the classes for which no bin may be bought any more.
	hopeless Bitset
	load     []int64 // scratch
	// steps counts work done here and by other workers; counted is what a meter knows
	// of, prices apart, which keep their own account.
	steps, counted int64
}

// trials are the types that are worth a try for the items of a class, valid for
// one era of prices and one limit of cost.
type trials struct {
	seed  int32
	era   int
	limit float64 // what they should cost at most
	kinds []int32
}

// backoff is how many bins to open before looking for well filled ones again, and
// how often in a row that failed.
type backoff struct{ skip, failed int }

func (b *backoff) fail() {
	b.failed++
	b.skip = min(1<<b.failed, 64)
}

func newGreedy(m *menu, seed uint64) *greedy { return newGreedyWith(newPricer(m), random(seed)) }

func newGreedyWith(p *pricer, rng random) *greedy {
	return &greedy{c: p.c, menu: p.menu, prices: p, fillings: newFillings(p, rng), load: make([]int64, p.c.d)}
}

// fork is a second worker with the same prices.
func (g *greedy) fork() *greedy { return newGreedyWith(g.prices.fork(), random(g.fillings.rng.next())) }

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
		if g.construct(q, r, m) && q.betterThan(p) {
			p = q
		}
	}
	return p
}

// construct prices what is left in p and packs it. It returns false if m, which
// may be nil, stopped it.
func (g *greedy) construct(p *packing, r rule, m *meter) bool {
	g.prices.price(p.rem, p.lim)
	g.prices.refineFor(p.rem, 400_000, 4, 12)
	return g.build(p, r, m)
}

// Prices follow the demand: again whenever no more than this part of it is left,
// more often when there is time for it.
const (
	rarely = 0.65
	often  = 0.85
)

// build packs what is left in p by the prices at hand. It returns false if m,
// which may be nil, stopped it; what cannot be placed stays in p.rem.
func (g *greedy) build(p *packing, r rule, m *meter) bool {
	if g.made == nil {
		g.made, g.round = make([]filling, len(g.c.kinds)), make([]filling, len(g.c.kinds))
	}
	g.prices.soften(p.rem)
	g.fillFixed(p, r)
	g.retry, g.hopeless = backoff{}, NewBitset(len(g.c.classes))
	g.crew = g.crewOf(p)
	g.prices.era++
	g.fillings.prune(p.rem)
	worth, part := g.prices.now.worth(p.rem), rarely
	if m != nil {
		part = often
	}
	for p.left() > 0 {
		if now := g.prices.now.worth(p.rem); now < part*worth {
			g.prices.refineFor(p.rem, 150_000, 2, 3)
			g.prices.soften(p.rem)
			g.fillings.prune(p.rem)
			worth = g.prices.now.worth(p.rem)
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

// work is the number of steps done so far, prices included.
func (g *greedy) work() int64 { return g.fillings.fill.work() + g.steps + g.prices.work() }

// account tells the meter of the work done since it was last told.
func (g *greedy) account(m *meter) {
	g.prices.account(m)
	work := g.fillings.fill.work() + g.steps
	m.spend(work - g.counted)
	g.counted = work
}

// fillFixed fills what exists already.
func (g *greedy) fillFixed(p *packing, r rule) {
	bin := &g.fillings.fill.bin
	for _, t := range g.c.fixed {
		for p.lim.room(t) > 0 {
			g.fillings.addAny(p.rem, t, nil, g.prices.at(t), r)
			if len(bin.touched) == 0 {
				break
			}
			items := bin.contents()
			p.buy(t, items, p.repeats(t, items))
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
		n := min(pt.times, p.lim.room(t))
		p.lim.open(pt.kind, -n)
		p.lim.open(t, n)
		p.cost += int64(n) * (c.kinds[t].cost - c.kinds[pt.kind].cost)
		if n < pt.times {
			p.patterns = append(p.patterns, pattern{pt.kind, pt.times - n, pt.items})
		}
		p.patterns[k] = pattern{t, n, pt.items}
	}
}
