package topology

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Span is a number of pods that a domain may take: at least and at most so many.
type Span struct{ Least, Most int }

// Placeable says which pods of a class are placed, and where they may go.
type Placeable struct {
	// Pods is how many are placed.
	Pods int
	// Options and Nodes are those that may take them.
	Options, Nodes bitset.Set
	// Domains are those of the key that some option or node has, of whichever class;
	// negative for those without the label.
	Domains []int32
	// Alone reports whether of all pods that are placed only those of the class count for a
	// counter.
	Alone func(counter int) bool
}

// Spans are limits that every plan keeps which places the pods, one for each of its domains of
// a label key; nil if the class has no rules by which there are any. They follow from the
// class's own spread constraints, as far as no other pods change the counts, and from its
// anti-affinity to itself. Pods come one after the other, but the least count of a spread
// never falls while they do: so the last pod of each domain has entered by a least count that
// is no more than that in the end.
func (t *Topology) Spans(r *Rules, key int, p Placeable) []Span {
	var out []Span
	narrow := func(domain int, s Span) {
		if out == nil {
			out = slices.Repeat([]Span{{0, p.Pods}}, len(p.Domains))
		}
		out[domain].Least, out[domain].Most = max(out[domain].Least, s.Least), min(out[domain].Most, s.Most)
	}
	for i := range r.Spread {
		s := &r.Spread[i]
		if s.Key == key && s.Hard && s.Self == 1 && p.Alone(s.Counter) && t.seesAll(s.Counter, p) {
			for at, span := range t.spreadSpans(s, p) {
				narrow(at, span)
			}
		}
	}
	for _, a := range r.AntiAffinity {
		if a.Key != key || !a.Self || !t.seesAll(a.Counter, p) {
			continue
		}
		for at, d := range p.Domains {
			switch {
			case d >= 0 && t.running.in(a.Counter, d) > 0:
				narrow(at, Span{0, 0})
			case d >= 0:
				narrow(at, Span{0, 1})
			}
		}
	}
	return out
}

// seesAll reports whether a counter counts the pods wherever they go.
func (t *Topology) seesAll(counter int, p Placeable) bool {
	c := &t.counters[counter]
	if c.options == nil {
		return true
	}
	options, nodes := p.Options.Clone(), p.Nodes.Clone()
	options.AndNot(c.options)
	nodes.AndNot(c.nodes)
	return !options.Any() && !nodes.Any()
}

// spreadSpans are the limits of a spread constraint, nil if it has none. Whatever the least
// count is in the end, at least so many pods are in every eligible domain, and no domain with
// new pods has more than MaxSkew above it. What the limits of the others leave or need
// narrows each; over all least counts that are possible, the widest count.
func (t *Topology) spreadSpans(s *Spread, p Placeable) []Span {
	var out []Span
	for _, least := range t.leastCounts(s, p) {
		spans := make([]Span, len(p.Domains))
		needed, room := 0, 0
		for at, d := range p.Domains {
			switch count := t.running.in(s.Counter, d); {
			case d < 0: // it admits no pods
			case !slices.Contains(s.Domains, d):
				spans[at].Most = p.Pods
			default:
				spans[at] = Span{int(max(0, least-count)), int(max(0, least+s.MaxSkew-count))}
			}
			needed, room = needed+spans[at].Least, room+spans[at].Most
		}
		if needed > p.Pods || room < p.Pods {
			continue
		}
		for at, own := range spans {
			spans[at].Least = max(own.Least, p.Pods-(room-own.Most))
			spans[at].Most = min(own.Most, p.Pods-(needed-own.Least))
		}
		if out == nil {
			out = spans
			continue
		}
		for at, own := range spans {
			out[at].Least, out[at].Most = min(out[at].Least, own.Least), max(out[at].Most, own.Most)
		}
	}
	return out
}

// leastCounts are what the least count of a spread constraint may be in the end, and more: it
// does not fall, does not rise above that of a domain which takes none of the pods, and needs a
// pod in each domain that is below it.
func (t *Topology) leastCounts(s *Spread, p Placeable) []int32 {
	if len(s.Domains) == 0 {
		return nil
	}
	lowest, highest := int32(math.MaxInt32), int32(math.MaxInt32)
	for _, d := range s.Domains {
		count := t.running.in(s.Counter, d)
		if lowest = min(lowest, count); !slices.Contains(p.Domains, d) {
			highest = min(highest, count)
		}
	}
	var out []int32
	for least := lowest; least <= min(highest, lowest+int32(p.Pods)); least++ {
		out = append(out, least)
	}
	return out
}
