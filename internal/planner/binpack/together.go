package binpack

import (
	"sync"
)

// Two hands work at the same time where the parts of a packing do not depend on
// each other. There are two of them whatever the machine, so that a plan does not
// depend on where it is made.

// both runs two functions at the same time.
func both(a, b func()) {
	var wg sync.WaitGroup
	wg.Go(b)
	a()
	wg.Wait()
}

// beside is a meter for a hand that works at the same time.
func (m *meter) beside() *meter {
	o := *m
	return &o
}

// join counts what both hands have done as the time that the slower one took.
func (m *meter) join(o *meter) {
	m.steps = max(m.steps, o.steps)
	m.asked = min(m.asked, o.asked)
	m.stopped = m.stopped || o.stopped
}

// unlimited tells whether everything may be bought as often as one likes: then bins
// of different hands have nothing to do with each other.
func (c *core) unlimited() bool {
	if len(c.shared) > 0 {
		return false
	}
	for t := range c.kinds {
		if c.kinds[t].max >= 0 {
			return false
		}
	}
	return true
}

// Each hand has at least so many bins, and so many patterns, or there is one hand.
const (
	binsPerHand     = 32
	patternsPerHand = 50
)

// passes is pass by two hands, each with half of the bins, others every time.
func (e *exchange) passes(partners int, end int64) {
	n := len(e.bins)
	if !e.c.unlimited() || n < 2*binsPerHand {
		e.pass(partners, end)
		return
	}
	for i := range e.bins {
		j := i + e.rng.below(n-i)
		e.bins[i], e.bins[j] = e.bins[j], e.bins[i]
	}
	o := e.other()
	all := e.bins
	e.bins, o.bins = all[:n/2], all[n/2:]
	both(func() { e.pass(partners, end) }, func() { o.pass(partners, end) })
	e.bins = all
	e.saved += o.saved
	e.m.join(o.m)
}

// other is the second hand.
func (e *exchange) other() *exchange {
	o := *e
	o.m, o.rng, o.steps, o.saved = e.m.beside(), random(e.rng.next()), 0, 0
	return &o
}

// apart is how many steps the hands search each by itself before the bins are dealt
// anew.
const apart = 1 << 20

// runByTwo is run by two hands, each with half of the patterns, others every time.
func (s *search) runByTwo(bound int64, seed uint64) {
	now, best := s.p, s.c.newPacking()
	best.copyFrom(now)
	o := newSearch(s.re.menu, s.re.prices, s.c.newPacking(), s.m.beside(), seed)
	patience := s.patience()
	for since := 0; best.cost > bound && since < patience && !s.m.over(); {
		over := float64(now.cost-best.cost) / float64(now.cost)
		mine, theirs := s.deal(now)
		s.begin(mine, over)
		o.begin(theirs, over)
		*o.m = *s.m
		before := s.rounds + o.rounds
		end := s.m.steps + apart
		both(func() { s.runUntil(end) }, func() { o.runUntil(end) })
		s.m.join(o.m)
		since += s.rounds + o.rounds - before
		if x, y := s.result(), o.result(); x.cost+y.cost < best.cost {
			since = 0
			best.unite(x, y)
		}
		now.unite(s.p, o.p)
	}
	s.rounds += o.rounds
	s.p, s.record.kept, s.record.cost = best, best, best.cost
}

// deal gives every hand half of the patterns.
func (s *search) deal(p *packing) (mine, theirs *packing) {
	mine, theirs = &packing{c: p.c, rem: p.rem, lim: p.lim}, &packing{c: p.c, rem: p.rem, lim: p.lim}
	n := len(p.patterns)
	for i := range n {
		j := i + s.rng.below(n-i)
		p.patterns[i], p.patterns[j] = p.patterns[j], p.patterns[i]
		to := mine
		if i%2 == 1 {
			to = theirs
		}
		to.patterns = append(to.patterns, p.patterns[i])
		to.cost += s.c.kinds[p.patterns[i].kind].cost * int64(p.patterns[i].times)
	}
	return mine, theirs
}

// begin takes up another packing, whose cost is over the record by a part of it.
func (s *search) begin(p *packing, over float64) {
	s.p, s.record.cost = p, p.cost-int64(over*float64(p.cost))
	s.record.missing = s.record.cost < p.cost
	s.record.kept.copyFrom(p)
	s.weigh()
}

// runUntil tries for so many steps.
func (s *search) runUntil(end int64) {
	for len(s.p.patterns) > 0 && s.m.steps < end && !s.m.over() {
		s.trial()
	}
}

// A first packing is made by two hands where each has at least so many classes, of so
// few items on average that a bin is hardly ever bought twice.
const (
	classesPerHand = 128
	itemsPerClass  = 4
)

// buildByTwo is a first build by two hands, each with half of the classes. As every bin
// has half as many to choose from, each takes less than half as long.
func (g *greedy) buildByTwo(p *packing, r rule) {
	if !g.c.unlimited() || len(p.rem) < 2*classesPerHand || p.left() > itemsPerClass*len(p.rem) {
		g.build(p, r, nil)
		return
	}
	mine, theirs := g.c.share(p.rem, g.prices.now.value)
	o := g.fork()
	both(func() { g.build(mine, r, nil) }, func() { o.build(theirs, r, nil) })
	p.unite(mine, theirs)
	for i := range p.rem {
		p.rem[i] = mine.rem[i] + theirs.rem[i]
	}
	g.steps += o.work()
}

// group is a rule by which items cannot share bins at will.
type group struct {
	sig, conflict, perBin int
	everywhere            uint64 // the dimensions of which all bins have the same
}

// groupOf is the group of a class.
func (c *core) groupOf(i int32) group {
	cl := &c.classes[i]
	gr := group{sig: cl.sig, perBin: cl.perBin, conflict: -1}
	if len(cl.conf) > 0 {
		gr.conflict = int(cl.conf[0])
	}
	for d, v := range cl.size {
		if v > 0 && !c.varies[d] {
			gr.everywhere |= 1 << min(d, 63)
		}
	}
	return gr
}

// share gives every hand half of the classes, and as many items of every group, of
// which each is worth about the same.
func (c *core) share(rem []int, value []float64) (mine, theirs *packing) {
	mine, theirs = c.newPacking(), c.newPacking()
	clear(mine.rem)
	clear(theirs.rem)
	order := make([]int32, len(rem))
	for i := range order {
		order[i] = int32(i)
	}
	sortBy(order, func(i int32) float64 { return -value[i] })
	more := map[group]int{} // by how many items mine are more
	for _, i := range order {
		gr := c.groupOf(i)
		if more[gr] <= 0 {
			mine.rem[i] = rem[i]
			more[gr] += rem[i]
		} else {
			theirs.rem[i] = rem[i]
			more[gr] -= rem[i]
		}
	}
	return mine, theirs
}
