package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Host is the key number of kubernetes.io/hostname: every place is a domain.
const Host = -1

// Place is where pods are: an existing node, or a new node that is planned as one
// option.
type Place struct {
	// ID identifies the place in one plan, and is its domain for [Host]: the index of
	// an existing node, or a number that no other place has. It is negative for a node
	// of which only the option is known: such a place has a domain of every label key
	// but none of Host, and no pods are on it.
	ID int
	// Node is the index of an existing node in Problem.Nodes, or -1.
	Node int
	// Option is the index of the option behind a new node in Space.Options. It is
	// valid if Node is -1.
	Option int
}

// Domain is one domain of a counter.
type Domain struct {
	// Counter is an index as in [Spread]; it decides the topology key.
	Counter int
	// Value numbers the label value as [feasible.Space] does.
	Value int32
}

// Topology is the compiled topology rules of a problem. [Compile] makes it, and nothing
// changes it afterwards: any number of [Counts], [Order] values and goroutines share
// one.
type Topology struct {
	space *feasible.Space
	// counters are all distinct counters; rules and domains refer to them by index.
	counters []counter
	// groups are the distinct sets of eligible domains of spread constraints.
	// [Spread.group] is an index into them.
	groups []group
	// rules are those of each class of the problem, by level; none for a class that
	// is not valid.
	rules [][]Rules
	// adds lists, for each class of the problem, the counters that count its pods,
	// ascending but for those of its own anti-affinity terms, which come last.
	adds [][]int32
	// counts is, for each class of the problem, how its pods count.
	counts []countedAs
	// running has the pods that run already. Every [Counts] begins as a copy.
	running *Counts
}

// group is what spread constraints with the same counter and the same eligible domains
// have in common: the global minimum.
type group struct {
	counter int
	// domains are the eligible domains, ascending; for [Host] nodes that exist.
	domains []int32
}

// Rules returns the rules of a class at a level. Both must exist.
func (t *Topology) Rules(class, level int) *Rules { return &t.rules[class][level] }

// Adds lists the counters that count the pods of a class. Callers do not change the
// list.
func (t *Topology) Adds(class int) []int32 { return t.adds[class] }

// KeyOf is the key of a counter's domains.
func (t *Topology) KeyOf(counter int) int { return t.counters[counter].key }

// KeyName is the label behind a key number.
func (t *Topology) KeyName(key int) string {
	if key == Host {
		return model.LabelHostname
	}
	return t.space.Labels.Keys()[key]
}

// Domain returns the domain of a place for a key, or a negative number where it has
// none. For [Host] it is the place itself.
func (t *Topology) Domain(key int, p Place) int32 {
	switch {
	case key == Host:
		return int32(p.ID)
	case p.Node >= 0:
		return t.space.Labels.NodeValue(key, p.Node)
	default:
		return t.space.Labels.OptionValue(key, p.Option)
	}
}

// starts reports whether the place is a node that has yet to start.
func (t *Topology) starts(p Place) bool { return p.Node < 0 || !t.exists(p.Node) }

// exists reports whether the scheduler sees a node of the problem already.
func (t *Topology) exists(node int) bool {
	return t.space.Problem.Nodes[node].State != model.NodeLaunching
}

// LabelKeys lists the label keys of all counters, ascending. [Host] is left out.
func (t *Topology) LabelKeys() []int {
	var keys []int
	for i := range t.counters {
		keys = withLabel(keys, t.counters[i].key)
	}
	slices.Sort(keys)
	return keys
}

// Filters lists the sets of options that counters are limited to. Callers do not change
// the sets.
func (t *Topology) Filters() []bitset.Set {
	var out []bitset.Set
	for i := range t.counters {
		if t.counters[i].options != nil {
			out = append(out, t.counters[i].options)
		}
	}
	return out
}

// In returns the options in a domain that its counter counts.
func (t *Topology) In(d Domain) bitset.Set {
	c := &t.counters[d.Counter]
	out := bitset.New(len(t.space.Options))
	for o := range t.space.Options {
		if t.space.Labels.OptionValue(c.key, o) == d.Value && (c.options == nil || c.options.Has(o)) {
			out.Add(o)
		}
	}
	return out
}

// OtherSpreads lists the counters on the given label keys that spread constraints of
// other classes read and that count pods of this class, although these rules do not
// read them. The pods are free to unbalance such a spread, and do better not to where
// their domain has to be decided anyway. Keys are those of [Order.Keys] for the rules.
func (t *Topology) OtherSpreads(r *Rules, keys []int) []int {
	var out []int
	for _, c := range t.adds[r.Class] {
		if !t.counters[c].bySpread || !slices.Contains(keys, t.counters[c].key) {
			continue
		}
		if !slices.ContainsFunc(r.Spread, func(s Spread) bool { return s.Counter == int(c) }) {
			out = append(out, int(c))
		}
	}
	return out
}

// withLabel returns the list with one more key, unless it is [Host] or in the list.
func withLabel(keys []int, k int) []int {
	if k == Host || slices.Contains(keys, k) {
		return keys
	}
	return append(keys, k)
}
