package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Domain is a value of a counter's key.
type Domain struct {
	Counter int
	Value   int32
}

// settled is what belongs to a spread constraint besides its rule.
type settled struct {
	counter int
	// known are the domains that it began with, more those that machines of
	// others add.
	known, more []int32
	// options are those that its pods could be bought on.
	options feasible.Set
	// byAffinity says that the pods' node affinity decides which nodes count.
	byAffinity bool
}

// Settle lets spread constraints count further domains: those in which a plan
// buys machines that the constraint's pods cannot use. The scheduler looks at the
// nodes that there are, whoever they were bought for.
func (w *World) Settle(domains []Domain) {
	for i := range w.spreads {
		s := &w.spreads[i]
		for _, d := range domains {
			if d.Counter == s.counter && !slices.Contains(s.known, d.Value) && !slices.Contains(s.more, d.Value) {
				s.more = append(s.more, d.Value)
			}
		}
		w.minima[i] = minimum{}
	}
}

// Span is what the outside of a constraint depends on, where that can be told.
type Span struct {
	key   int
	hard  bool
	known *int32
}

// SpanOf returns a constraint's span. Constraints with the same one have the same
// outside, if the second result says so.
func (w *World) SpanOf(s *Spread) (Span, bool) {
	own := &w.spreads[s.id]
	if len(own.known) == 0 || len(own.more) > 0 || w.counters[s.Counter].options != nil {
		return Span{}, false
	}
	return Span{s.Key, s.Hard, &own.known[0]}, true
}

// KeyOf is the key of a domain.
func (w *World) KeyOf(d Domain) int { return w.counters[d.Counter].Key }

// Outside lists the domains of a constraint's key that it does not count and in
// which one of the options would be a machine that it has to count.
func (w *World) Outside(s *Spread, options feasible.Set) []int32 {
	if s.Key == Host || !s.Hard {
		return nil
	}
	c, own := w.counters[s.Counter], &w.spreads[s.id]
	var out []int32
	for o := range options.All {
		v := w.space.OptionValue(s.Key, o)
		if v < 0 || c.options != nil && !c.options.Has(o) || slices.Contains(out, v) {
			continue
		}
		if _, ok := slices.BinarySearch(own.known, v); !ok && !slices.Contains(own.more, v) {
			out = append(out, v)
		}
	}
	return out
}

// TooFew reports whether a constraint has fewer domains than its minDomains.
func (w *World) TooFew(s *Spread) bool {
	return len(s.Domains)+len(w.spreads[s.id].more) < s.MinDomains
}

// Leans reports whether a constraint would have fewer domains than its minDomains
// if of those that [World.Settle] added only some stayed, and has not now.
func (w *World) Leans(s *Spread, stay []Domain) bool {
	if s.MinDomains == 0 || w.TooFew(s) {
		return false
	}
	left := len(s.Domains)
	for _, value := range w.spreads[s.id].more {
		if slices.Contains(stay, Domain{s.Counter, value}) {
			left++
		}
	}
	return left < s.MinDomains
}

// Excess is by how many the pods in a place's domain exceed what a constraint
// allows when another domain counts, too.
func (w *World) Excess(s *Spread, p Place, other int32) int {
	c := w.counters[s.Counter]
	return int(c.Count(w.Domain(s.Key, p)) - c.Count(other) - s.MaxSkew)
}

// In are the options in a domain that its counter sees.
func (w *World) In(d Domain) feasible.Set {
	c := w.counters[d.Counter]
	out := feasible.NewSet(len(w.space.Options))
	for o := range w.space.Options {
		if w.space.OptionValue(c.Key, o) == d.Value && (c.options == nil || c.options.Has(o)) {
			out.Add(o)
		}
	}
	return out
}
