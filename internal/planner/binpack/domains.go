package binpack

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/exact"
)

// Domains say where bins are, and how many items of each class every domain takes.
type Domains struct {
	// Count is how many domains there are, and Of is that of each bin, from 0.
	Count int
	Of    []int
	// Spans are by class, then by domain; nil for classes of which any number may be in each.
	Spans [][]Span
}

// Span is a number of items: at least and at most so many.
type Span struct{ Least, Most int }

// mostDomains is up to how many domains BoundOver looks at, each time at all bins. mostDomainPairs
// is up to how many pairs of a state and a filling it looks at in each domain, and
// mostPairsOfAll in all of them.
const (
	mostDomains     = 16
	mostDomainPairs = 1 << 17
	mostPairsOfAll  = 1 << 19
)

// Countable reports whether a problem with so many domains is small enough for [BoundOver].
func Countable(p *Problem, domains int) bool {
	pairs := pairsOf(p)
	return domains <= mostDomains && pairs <= mostDomainPairs && pairs*domains <= mostPairsOfAll
}

// BoundOver is a cost below which no packing of all items exists that keeps to the spans. It
// solves the problem of each domain for every state, which is so many items of each class, and
// then shares them out among the domains; it looks at no shared limit, and at no clock. It
// reports false for problems that are not [Countable], without a budget, and where no packing
// exists.
func BoundOver(p *Problem, d *Domains) (int64, bool) {
	if p.Budget <= 0 || !Countable(p, d.Count) {
		return 0, false
	}
	s := newStates(p)
	costs := make([]int64, len(s.counts)) // of the domains so far, by state
	for i := range costs[1:] {
		costs[1+i] = math.MaxInt64
	}
	for at := range d.Count {
		own := s.costsIn(d, at)
		if own == nil {
			return 0, false
		}
		if at == d.Count-1 {
			return s.leastOfAll(costs, own)
		}
		costs = s.join(costs, own)
	}
	return 0, false // no domain, no packing
}

// states are all the ways to take so many items of each class of a problem.
type states struct {
	p *Problem
	// counts are the items of each state by class: none in the first one, all in the last.
	counts [][]int
	stride []int // by class
}

// pairsOf is how many pairs of a state and a filling there are, or some number above
// mostDomainPairs.
func pairsOf(p *Problem) int {
	pairs := 1
	for i := range p.Classes {
		count := max(0, p.Classes[i].Count)
		if count >= mostDomainPairs {
			return mostDomainPairs + 1
		}
		if pairs *= (count + 1) * (count + 2) / 2; pairs > mostDomainPairs {
			break
		}
	}
	return pairs
}

// newStates lists the states of a countable problem.
func newStates(p *Problem) *states {
	s, n := &states{p: p, stride: make([]int, len(p.Classes))}, 1
	for i := range p.Classes {
		s.stride[i] = n
		n *= max(0, p.Classes[i].Count) + 1
	}
	s.counts = make([][]int, n)
	for at := range s.counts {
		s.counts[at] = make([]int, len(p.Classes))
		for i := range p.Classes {
			s.counts[at][i] = at / s.stride[i] % (max(0, p.Classes[i].Count) + 1)
		}
	}
	return s
}

// costsIn are the costs of all states in the bins of one domain, math.MaxInt64 for those
// which it does not take, or nil if that is too much work.
func (s *states) costsIn(d *Domains, domain int) []int64 {
	own := *s.p
	own.Bins, own.Classes = slices.Clone(own.Bins), slices.Clone(own.Classes)
	for b := range own.Bins {
		if d.Of[b] != domain {
			own.Bins[b].Max, own.Bins[b].Fixed = 0, false
		}
	}
	for i := range own.Classes {
		own.Classes[i].Priority = int32(i) // of different priority, classes are not merged
	}
	c, _ := reduce(&own)
	known, ok := exact.AllCosts(c)
	if !ok {
		return nil
	}
	out, some := make([]int64, len(s.counts)), make([]int, len(c.Classes))
	for at, counts := range s.counts {
		out[at] = math.MaxInt64
		if !s.takes(d, domain, counts) {
			continue
		}
		left := 0
		for _, n := range counts {
			left += n
		}
		for j := range c.Classes {
			some[j] = counts[c.Classes[j].Origins[0]]
			left -= some[j]
		}
		if cost, held := known.Of(some); held && left == 0 {
			out[at] = cost
		}
	}
	return out
}

// takes reports whether a domain may have the items of a state.
func (s *states) takes(d *Domains, domain int, counts []int) bool {
	for i, n := range counts {
		if d.Spans[i] == nil {
			continue
		}
		if span := d.Spans[i][domain]; n < span.Least || n > span.Most {
			return false
		}
	}
	return true
}

// join are the costs of all states in the domains so far and one more.
func (s *states) join(before, own []int64) []int64 {
	out := make([]int64, len(before))
	for at := range out {
		out[at] = math.MaxInt64
	}
	for here, cost := range own {
		if cost == math.MaxInt64 {
			continue
		}
		for rest, sum := range before {
			if sum > math.MaxInt64-1-cost || !s.addUp(here, rest) {
				continue
			}
			out[here+rest] = min(out[here+rest], sum+cost)
		}
	}
	return out
}

// addUp reports whether there are as many items as two states have together.
func (s *states) addUp(a, b int) bool {
	for i, n := range s.counts[a] {
		if n+s.counts[b][i] > max(0, s.p.Classes[i].Count) {
			return false
		}
	}
	return true
}

// leastOfAll is the cost of all items in the domains so far and the last one, or false if they
// do not take them.
func (s *states) leastOfAll(before, own []int64) (int64, bool) {
	least := int64(math.MaxInt64)
	for here, cost := range own {
		if rest := before[len(before)-1-here]; rest <= math.MaxInt64-1-cost {
			least = min(least, rest+cost)
		}
	}
	if least == math.MaxInt64 {
		return 0, false
	}
	return least, true
}
