package topology

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Host is the key number of kubernetes.io/hostname: every place is a domain.
const Host = -1

// Counter counts the pods that one term speaks of, per domain of its key.
type Counter struct {
	// Key is the label key's number in the space, or Host.
	Key int
	// Total counts over all domains; pods on places without a domain do not
	// count at all.
	Total   int
	byValue []int32
	byPlace map[int]int32
	// aboard counts pods on machines of which nobody knows the domain, by place.
	aboard map[int]int32
	// version counts changes; the last one raised the count of a domain from
	// changedFrom.
	version     int
	changed     int32
	changedFrom int32
	// attracts and repels say that affinity and anti-affinity look at the counter.
	attracts, repels bool
	// nodes and options limit which places count; nil means all of them.
	nodes, options feasible.Set
}

// Place is where pods are, as topology sees it: a node that exists, by its
// index, or a machine to be bought as an option.
type Place struct {
	// ID is unique per place. It is negative for a machine whose identity is not
	// decided yet: it has all domains but that of a host.
	ID int
	// Node is the index of an existing node, or -1; Option that of the option
	// behind a new machine.
	Node, Option int
}

// Domain returns the place's value for a key: its own number for Host.
func (w *World) Domain(key int, p Place) int32 {
	switch {
	case key == Host:
		return int32(p.ID)
	case p.Node >= 0:
		return w.space.NodeValue(key, p.Node)
	default:
		return w.space.OptionValue(key, p.Option)
	}
}

// Count is the number of counted pods in a domain.
func (c *Counter) Count(domain int32) int32 {
	if c.Key == Host {
		return c.byPlace[int(domain)]
	}
	if domain < 0 || int(domain) >= len(c.byValue) {
		return 0
	}
	return c.byValue[domain]
}

// Sees reports whether pods on the place count.
func (c *Counter) Sees(p Place) bool {
	if p.Node >= 0 {
		return c.nodes == nil || c.nodes.Has(p.Node)
	}
	return c.options == nil || c.options.Has(p.Option)
}

func (w *World) add(c *Counter, p Place, n int) {
	if !c.Sees(p) {
		return
	}
	w.addIn(c, w.Domain(c.Key, p), n)
}

// addIn counts n more pods in a domain.
func (w *World) addIn(c *Counter, d int32, n int) {
	if d < 0 {
		return
	}
	c.Total += n
	c.version++
	c.changed, c.changedFrom = d, c.Count(d)
	if c.Key == Host {
		c.byPlace[int(d)] += int32(n)
		return
	}
	for int(d) >= len(c.byValue) {
		c.byValue = append(c.byValue, 0)
	}
	c.byValue[d] += int32(n)
}

// term identifies what a counter counts.
type term struct {
	key        int
	selector   *model.Selector
	namespaces []string
	all        bool
	// carriers counts the pods that carry the term instead of those it selects.
	carriers bool
}

func (t *term) selects(namespace string, labels map[string]string) bool {
	if !t.all && !slices.Contains(t.namespaces, namespace) {
		return false
	}
	return t.selector.Matches(labels)
}

// appendID appends what is equal for terms that count the same.
func (t *term) appendID(id []byte, filter string) []byte {
	id = append(id, byte(t.key>>8), byte(t.key))
	if t.carriers {
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
