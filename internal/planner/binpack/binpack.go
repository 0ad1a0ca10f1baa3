package binpack

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack/bound"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/construct"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/exact"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/localsearch"
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
)

// Searches are the ways in which Solve improves a first packing if there is a budget.
// Production uses all of them; leaving one out shows what it earns.
type Searches uint8

// The searches, in the order in which they run.
const (
	// Exchange moves items between bins until a bin fits a cheaper type.
	Exchange Searches = 1 << iota
	// Columns generates fillings, which sharpens prices and bound of small problems.
	Columns
	// OtherRules packs everything again by other rules for which items go first.
	OtherRules
	// RuinAndRecreate takes a few bins apart and packs their items again.
	RuinAndRecreate

	AllSearches = Exchange | Columns | OtherRules | RuinAndRecreate
)

// Solve packs the items of p at low cost. It always returns a feasible packing;
// see [Problem] for when it stops.
func Solve(p *Problem) *Solution { return SolveBy(p, AllSearches) }

// SolveBy is [Solve] with only some of the searches.
func SolveBy(p *Problem, by Searches) *Solution {
	c, unplaced := reduce(p)
	s := &Solution{Unplaced: unplaced}
	mt := meter.New(p.Budget, p.Clock)
	m := reduced.NewShortlist(c, reduced.FewPairs)
	g := construct.NewBuilder(m, p.Seed)
	best := c.NewPacking()
	bd := bound.NewBounder(m, c.NewPacking().Remaining)
	proven := !p.Unproven || !mt.Over()
	g.Pricer.Bound(bd, proven)
	g.BuildInParallel(best, construct.FirstRule)
	if best.Left() > 0 {
		best = g.Ration(best, p.SmallFirst)
		if bd = bound.NewBounder(m, best.Placed()); proven {
			g.Pricer.Bound(bd, true)
		}
	}
	s.FirstCost = best.Cost
	g.Account(mt)
	if !mt.Over() {
		best = packExactly(best, bd, mt)
	}
	if (best.Left() > 0 || best.Cost > bd.Floor()) && !mt.Over() {
		best, s.Rounds = improver{by, p.Seed}.improve(best, g, bd, mt)
	}
	if s.Steps = mt.Steps; proven {
		s.LowerBound = min(bd.Floor(), best.Cost)
	}
	newWriter(p, best).write(s)
	return s
}

// packExactly raises the bound of a problem of a few items to the least cost, and returns
// a packing of that cost: p, if it is one already.
func packExactly(p *reduced.Packing, bd *bound.Bounder, mt *meter.Meter) *reduced.Packing {
	if p.Left() > 0 {
		return p
	}
	least, best, solved := exact.Least(p.Problem, mt)
	if solved {
		bd.Raise(least)
	}
	if best != nil && best.BetterThan(p) {
		return best
	}
	return p
}

// improver says how packings are improved.
type improver struct {
	by   Searches
	seed uint64
}

// improve spends the meter's time on making a packing cheaper and its bound sharper,
// and returns the best one and how many improvements were tried.
func (im improver) improve(p *reduced.Packing, g *construct.Builder, bd *bound.Bounder, mt *meter.Meter) (*reduced.Packing, int) {
	c, rules := p.Problem, construct.OtherRules[:]
	m := g.List.Finer()
	if m != g.List {
		rules = append([]construct.Rule{construct.FirstRule}, rules...)
	}
	first, side := c.NewPacking(), mt.Fork()
	first.CopyFrom(p)
	var prices bound.Prices
	other := first
	concurrent.Both(func() {
		im.exchange(p, mt)
	}, func() {
		if m != g.List {
			g = construct.NewBuilder(m, im.seed)
		}
		b := bd.On(m)
		g.Pricer.Sharpen(b, side)
		if im.by&Columns != 0 {
			bound.GenerateColumns(b, g.Pricer.Now.Value, first, side)
		}
		prices = g.Pricer.Now.Clone()
		if im.by&OtherRules != 0 {
			other = g.Alternatives(first, rules, b, side)
		}
		bd.Best = b.Best
	})
	mt.Merge(side)
	if other != first && other.BetterThan(p) {
		p = other
		im.exchange(p, mt)
	}
	if p.Left() > 0 {
		g.TopUp(p)
		g.Grow(p)
	}
	if im.by&RuinAndRecreate == 0 {
		return p, 0
	}
	se := localsearch.NewSearch(m, prices, p, mt, im.seed)
	switch {
	case p.Left() > 0:
		se.Late = g
		se.Run(bd.Floor())
	case c.Unlimited() && len(p.Patterns) >= 2*localsearch.PatternsPerWorker:
		se.RunInParallel(bd.Floor(), im.seed+1)
	default:
		se.Run(bd.Floor())
	}
	return se.Result(), se.Rounds
}

func (im improver) exchange(p *reduced.Packing, mt *meter.Meter) {
	if im.by&Exchange != 0 {
		localsearch.Exchange(p, mt, im.seed)
	}
}

// Bound is a cost below which no packing of all items of p exists that some bin
// can hold. It packs nothing, which makes it cheaper than Solve, and is no less
// sharp.
func Bound(p *Problem) int64 {
	c, _ := reduce(p)
	mt := meter.New(p.Budget, p.Clock)
	m := reduced.NewShortlist(c, reduced.FewPairs)
	pr := bound.NewPricer(m)
	bd := bound.NewBounder(m, c.NewPacking().Remaining)
	pr.Bound(bd, true)
	pr.Account(mt)
	if !mt.Over() {
		least, _, solved := exact.Least(c, mt)
		if solved && len(c.Shared) == 0 {
			return least
		}
		bd.Raise(least)
	}
	if !mt.Over() {
		if f := m.Finer(); f != m {
			pr, bd = bound.NewPricer(f), bd.On(f)
		}
		pr.Sharpen(bd, mt)
		bound.GenerateColumns(bd, pr.Now.Value, nil, mt)
	}
	return bd.Floor()
}
