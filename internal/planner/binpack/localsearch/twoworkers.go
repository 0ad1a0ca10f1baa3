package localsearch

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/concurrent"
)

// Two workers work at the same time where the parts of a packing do not depend on
// each other. There are two of them whatever the machine, so that a plan does not
// depend on where it is made.

// Each worker has at least so many bins, and so many patterns, or there is one worker.
const (
	binsPerWorker     = 32
	PatternsPerWorker = 50
)

// passes is pass by two workers, each with half of the bins, others every time.
func (e *exchange) passes(partners int, end int64) {
	n := len(e.bins)
	if !e.c.Unlimited() || n < 2*binsPerWorker {
		e.pass(partners, end)
		return
	}
	for i := range e.bins {
		j := i + e.rng.Below(n-i)
		e.bins[i], e.bins[j] = e.bins[j], e.bins[i]
	}
	o := e.fork()
	all := e.bins
	e.bins, o.bins = all[:n/2], all[n/2:]
	concurrent.Both(func() { e.pass(partners, end) }, func() { o.pass(partners, end) })
	e.bins = all
	e.saved += o.saved
	e.meter.Merge(o.meter)
}

// fork is the second worker.
func (e *exchange) fork() *exchange {
	o := *e
	o.meter, o.rng, o.steps, o.saved = e.meter.Fork(), reduced.RNG(e.rng.Next()), 0, 0
	return &o
}

// Apart is how many steps the workers search each by itself before the bins are
// divided again.
const Apart = 1 << 20

// RunInParallel is run by two workers, each with half of the patterns, others every time.
func (s *Search) RunInParallel(bound int64, seed uint64) {
	now, best := s.p, s.c.NewPacking()
	best.CopyFrom(now)
	o := NewSearch(s.re.list, s.re.prices, s.c.NewPacking(), s.meter.Fork(), seed)
	patience := s.patience()
	for since := 0; best.Cost > bound && since < patience && !s.meter.Over(); {
		over := float64(now.Cost-best.Cost) / float64(now.Cost)
		mine, theirs := s.partition(now)
		s.begin(mine, over)
		o.begin(theirs, over)
		o.meter.Resume(s.meter)
		before := s.Rounds + o.Rounds
		end := s.meter.Steps + Apart
		concurrent.Both(func() { s.runUntil(end) }, func() { o.runUntil(end) })
		s.meter.Merge(o.meter)
		since += s.Rounds + o.Rounds - before
		if x, y := s.Result(), o.Result(); x.Cost+y.Cost < best.Cost {
			since = 0
			best.Merge(x, y)
		}
		now.Merge(s.p, o.p)
	}
	s.Rounds += o.Rounds
	s.p, s.record.kept, s.record.cost = best, best, best.Cost
}

// partition gives each worker half of the patterns.
func (s *Search) partition(p *reduced.Packing) (mine, theirs *reduced.Packing) {
	mine, theirs = &reduced.Packing{Problem: p.Problem, Remaining: p.Remaining, Limits: p.Limits},
		&reduced.Packing{Problem: p.Problem, Remaining: p.Remaining, Limits: p.Limits}
	n := len(p.Patterns)
	for i := range n {
		j := i + s.rng.Below(n-i)
		p.Patterns[i], p.Patterns[j] = p.Patterns[j], p.Patterns[i]
		to := mine
		if i%2 == 1 {
			to = theirs
		}
		to.Patterns = append(to.Patterns, p.Patterns[i])
		to.Cost += s.c.Types[p.Patterns[i].Type].Cost * int64(p.Patterns[i].Times)
	}
	return mine, theirs
}

// begin takes up another packing, whose cost is over the record by a part of it.
func (s *Search) begin(p *reduced.Packing, over float64) {
	s.p, s.record.cost = p, p.Cost-int64(over*float64(p.Cost))
	s.record.missing = s.record.cost < p.Cost
	s.record.kept.CopyFrom(p)
	s.weigh()
}

// runUntil tries for so many steps.
func (s *Search) runUntil(end int64) {
	for len(s.p.Patterns) > 0 && s.meter.Steps < end && !s.meter.Over() {
		s.trial()
	}
}
