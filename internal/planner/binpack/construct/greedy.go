package construct

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Builder is the constructive packer: it opens one bin after the other.
type Builder struct {
	c        *reduced.Problem
	List     *reduced.Shortlist
	Pricer   *bound.Pricer
	fillings fillings
	// made are, by type, the last fillings; round are those round an item of class
	// trials.seed. Both are nil until the first build.
	made, round []filling
	trials      trials
	retry       backoff
	capped      cappedGroup
	// hopeless are the classes for which no bin may be bought any more.
	hopeless bitset.Set
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
	types []int32
}

// backoff is how many bins to open before looking for well filled ones again, and
// how often in a row that failed.
type backoff struct{ skip, failed int }

func (b *backoff) fail() {
	b.failed++
	b.skip = min(1<<b.failed, 64)
}

// NewBuilder packs with the types on the list; seed varies its random choices.
func NewBuilder(m *reduced.Shortlist, seed uint64) *Builder {
	return newGreedyWith(bound.NewPricer(m), reduced.RNG(seed))
}

func newGreedyWith(p *bound.Pricer, rng reduced.RNG) *Builder {
	return &Builder{c: p.C, List: p.List, Pricer: p, fillings: newFillings(p, rng), load: make([]int64, p.C.Dims)}
}

// fork is a second worker with the same prices.
func (g *Builder) fork() *Builder {
	return newGreedyWith(g.Pricer.Fork(), reduced.RNG(g.fillings.rng.Next()))
}

// Which items go first makes all the difference, and which way is better
// depends on how many fit in the bins: firstRule is good in most cases, and
// otherRules are tried when it was not.
var (
	FirstRule  = Rule{Big: 0.2}
	OtherRules = [...]Rule{{Big: 0.5}, {Big: 0}, {Big: 1}}
)

// goodEnough is the gap to the bound at which no other rule is tried.
const goodEnough = 0.021

// Alternatives packs everything again by other rules, if p is far from the
// bound, and returns the best packing.
func (g *Builder) Alternatives(p *reduced.Packing, rules []Rule, bd *bound.Bounder, m *meter.Meter) *reduced.Packing {
	end := m.Steps + m.Limit/8
	for _, r := range rules {
		if m.Over() || m.Steps > end || p.Left() > 0 || float64(p.Cost) <= bd.Best*(1+goodEnough) {
			break
		}
		q := g.c.NewPacking()
		if g.construct(q, r, m) && q.BetterThan(p) {
			p = q
		}
	}
	return p
}

// construct prices what is left in p and packs it. It returns false if m, which
// may be nil, stopped it.
func (g *Builder) construct(p *reduced.Packing, r Rule, m *meter.Meter) bool {
	g.Pricer.Price(p.Remaining, p.Limits)
	g.Pricer.RefineFor(p.Remaining, 400_000, 4, 12)
	return g.Build(p, r, m)
}

// Prices follow the demand: again whenever no more than this part of it is left,
// more often when there is time for it.
const (
	rarely = 0.65
	often  = 0.85
)

// Build packs what is left in p by the prices at hand. It returns false if m,
// which may be nil, stopped it; what cannot be placed stays in p.rem.
func (g *Builder) Build(p *reduced.Packing, r Rule, m *meter.Meter) bool {
	if g.made == nil {
		g.made, g.round = make([]filling, len(g.c.Types)), make([]filling, len(g.c.Types))
	}
	g.Pricer.Soften(p.Remaining)
	g.fillFixed(p, r)
	g.retry, g.hopeless = backoff{}, bitset.New(len(g.c.Classes))
	g.capped = g.cappedGroupOf(p)
	g.Pricer.Era++
	g.fillings.prune(p.Remaining)
	worth, part := g.Pricer.Now.Worth(p.Remaining), rarely
	if m != nil {
		part = often
	}
	for p.Left() > 0 {
		if now := g.Pricer.Now.Worth(p.Remaining); now < part*worth {
			g.Pricer.RefineFor(p.Remaining, 150_000, 2, 3)
			g.Pricer.Soften(p.Remaining)
			g.fillings.prune(p.Remaining)
			worth = g.Pricer.Now.Worth(p.Remaining)
		}
		if !g.next(p, r) {
			break
		}
		if m != nil {
			g.Account(m)
			if m.Over() {
				return false
			}
		}
	}
	g.shrink(p)
	return true
}

// work is the number of steps done so far, prices included.
func (g *Builder) work() int64 { return g.fillings.fill.Work() + g.steps + g.Pricer.Work() }

// Account tells the meter of the work done since it was last told.
func (g *Builder) Account(m *meter.Meter) {
	g.Pricer.Account(m)
	work := g.fillings.fill.Work() + g.steps
	m.Spend(work - g.counted)
	g.counted = work
}

// fillFixed fills what exists already.
func (g *Builder) fillFixed(p *reduced.Packing, r Rule) {
	bin := &g.fillings.fill.Bin
	for _, t := range g.c.Fixed {
		for p.Limits.Room(t) > 0 {
			g.fillings.addAny(p.Remaining, t, nil, g.Pricer.At(t), r)
			if len(bin.Touched) == 0 {
				break
			}
			items := bin.Contents()
			p.Buy(t, items, p.Repeats(t, items))
		}
	}
}

// shrink replaces bins by cheaper ones that hold the same.
func (g *Builder) shrink(p *reduced.Packing) {
	c := g.c
	for k := 0; k < len(p.Patterns); k++ {
		pt := p.Patterns[k]
		if c.Types[pt.Type].Fixed {
			continue
		}
		t := c.Cheapest(pt.Type, pt.Items, p.Limits, g.load)
		if t == pt.Type {
			continue
		}
		n := min(pt.Times, p.Limits.Room(t))
		p.Limits.Open(pt.Type, -n)
		p.Limits.Open(t, n)
		p.Cost += int64(n) * (c.Types[t].Cost - c.Types[pt.Type].Cost)
		if n < pt.Times {
			p.Patterns = append(p.Patterns, reduced.Pattern{Type: pt.Type, Times: pt.Times - n, Items: pt.Items})
		}
		p.Patterns[k] = reduced.Pattern{Type: t, Times: n, Items: pt.Items}
	}
}
