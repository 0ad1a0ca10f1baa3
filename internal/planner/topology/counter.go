package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// counter says what is counted: the pods of one term, per domain of its topology key,
// on the places that count. [Counts] has the numbers.
type counter struct {
	term
	// nodes and options limit which places count; nil means all of them. Either both
	// are nil or none is.
	nodes, options bitset.Set
	// bySpread, byAffinity and byAntiAffinity say which kinds of rules read the
	// counter; for byAntiAffinity terms of the class itself, not inverted ones.
	bySpread, byAffinity, byAntiAffinity bool
	// kinds are those that a pairwise counter of a class's own terms counts; nil for none,
	// and for all other counters.
	kinds bitset.Set
	// groups are those of [Topology.groups] whose minimum the counts decide.
	groups []int
}

// sees reports whether pods on the place count.
func (c *counter) sees(p Place) bool {
	if p.Node >= 0 {
		return c.nodes == nil || c.nodes.Has(p.Node)
	}
	return c.options == nil || c.options.Has(p.Option)
}

// term selects the pods that a counter counts.
type term struct {
	// key is the number of the topology key, or Host.
	key int
	// selector selects by labels; nil selects no pod.
	selector *model.Selector
	// namespaces are sorted, since terms may list nearly all that there are. With all the
	// selector applies in every namespace.
	namespaces []string
	all        bool
	// inverse counts the pods that have the term as anti-affinity, instead of those
	// that it selects.
	inverse bool
}

// selects reports whether the term selects a pod, which the term counts unless it is
// inverse.
func (t *term) selects(namespace string, labels map[string]string) bool {
	if !t.all {
		if _, listed := slices.BinarySearch(t.namespaces, namespace); !listed {
			return false
		}
	}
	return t.selector.Matches(labels)
}

// appendID appends what is equal for terms that count the same pods on the same places.
// The filter is a text that is equal for equal sets of places.
func (t *term) appendID(id []byte, filter string) []byte {
	id = append(id, byte(t.key>>8), byte(t.key))
	if t.inverse {
		id = append(id, 'c')
	}
	if t.all {
		id = append(id, '*')
	}
	for _, n := range t.namespaces {
		id = append(append(id, n...), 3)
	}
	id = append(id, 4)
	if t.selector == nil {
		id = append(id, '-')
	} else {
		id = feasible.AppendRequirements(id, t.selector.Requirements)
	}
	return append(append(id, 4), filter...)
}

// singleValue returns a requirement of the form "key In [value]" of a selector, if it
// has one: only pods with that label are selected.
func singleValue(s *model.Selector) (model.Requirement, bool) {
	if s != nil {
		for _, r := range s.Requirements {
			if r.Operator == model.In && len(r.Values) == 1 {
				return r, true
			}
		}
	}
	return model.Requirement{}, false
}
