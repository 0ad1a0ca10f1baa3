package topology

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Compile binds the topology terms of all classes to counters, and counts the pods that
// run. Levels are those of each class of the problem, in its order; a class that is not
// valid has none. Nodes that are leaving do not count.
func Compile(s *feasible.Space, levels [][]Level) *Topology {
	c := &compiler{
		t:      &Topology{space: s, rules: make([][]Rules, len(levels))},
		byTerm: map[string]int{}, byOptions: map[spanID][]int32{}, byGroup: map[string]int{},
	}
	n := 0
	for class := range levels {
		n += len(levels[class])
	}
	storage := make([]Rules, n)
	for class := range levels {
		n = len(levels[class])
		c.t.rules[class], storage = storage[:n:n], storage[n:]
		c.class(class, levels[class])
	}
	p := s.Problem
	for i := range p.Shapes {
		for t := range p.Shapes[i].AntiAffinity {
			c.inverse(&p.Shapes[i].AntiAffinity[t])
		}
	}
	l := newLinker(c)
	var inverse []AntiAffinity
	for i := range p.Classes {
		adds, repelled := l.find(&p.Classes[i].PodShape)
		c.t.adds = append(c.t.adds, adds)
		inverse = make([]AntiAffinity, 0, len(repelled))
		for _, counter := range repelled {
			inverse = append(inverse, AntiAffinity{counter, c.t.counters[counter].key, slices.Contains(adds, counter)})
		}
		for level := range c.t.rules[i] {
			c.t.rules[i][level].Inverse, c.t.rules[i][level].added = inverse, len(adds) > 0
		}
	}
	shapes := make([][]int, len(p.Shapes))
	for i := range p.Shapes {
		shapes[i], _ = l.find(&p.Shapes[i])
	}
	c.t.running = c.count(shapes)
	return c.t
}

// compiler makes a topology, and remembers what many terms have in common.
type compiler struct {
	t *Topology
	// byTerm finds counters by [term.appendID].
	byTerm map[string]int
	// byOptions finds lists of domains, byGroup groups by counter and domains.
	byOptions map[spanID][]int32
	byGroup   map[string]int
	// id is storage for the text that is looked up.
	id []byte
}

// spanID is what a list of domains depends on where all nodes count. Sets of options
// are recognized by their first word, since classes share them.
type spanID struct {
	key     int
	options *uint64
}

// class compiles the rules of one class, for which there is storage, but for the inverse
// ones.
func (c *compiler) class(index int, levels []Level) {
	spec := &c.t.space.Problem.Classes[index]
	for l := range levels {
		terms, r := &levels[l], &c.t.rules[index][l]
		r.Class = index
		keys := c.hardKeys(terms.Spread)
		for i := range terms.Spread {
			r.Spread = append(r.Spread, c.spread(spec, &terms.Spread[i], terms.Options, keys))
		}
		for i := range terms.Affinity {
			t := c.term(&terms.Affinity[i])
			at := c.counter(t, "", nil, nil)
			c.t.counters[at].byAffinity = true
			r.Affinity = append(r.Affinity, Affinity{at, t.key, t.selects(spec.Namespace, spec.Labels)})
		}
		for i := range terms.AntiAffinity {
			t := c.term(&terms.AntiAffinity[i])
			at := c.counter(t, "", nil, nil)
			c.t.counters[at].byAntiAffinity = true
			r.AntiAffinity = append(r.AntiAffinity, AntiAffinity{at, t.key, t.selects(spec.Namespace, spec.Labels)})
		}
		for i := range spec.AntiAffinity {
			c.inverse(&spec.AntiAffinity[i])
		}
	}
}

// counter returns the counter of a term on the places that the sets leave, a new one if
// there is none yet.
func (c *compiler) counter(t term, filter string, nodes, options feasible.Set) int {
	c.id = t.appendID(c.id[:0], filter)
	if i, ok := c.byTerm[string(c.id)]; ok {
		return i
	}
	i := len(c.t.counters)
	c.t.counters = append(c.t.counters, counter{term: t, nodes: nodes, options: options})
	c.byTerm[string(c.id)] = i
	return i
}

// inverse returns the counter of the pods that have an anti-affinity term.
func (c *compiler) inverse(at *model.AffinityTerm) int {
	t := c.term(at)
	t.inverse = true
	return c.counter(t, "", nil, nil)
}

func (c *compiler) term(t *model.AffinityTerm) term {
	namespaces := t.Namespaces
	if !slices.IsSorted(namespaces) {
		namespaces = slices.Sorted(slices.Values(namespaces))
	}
	return term{key: c.keyOf(t.TopologyKey), selector: t.Selector, namespaces: namespaces, all: t.AllNamespaces}
}

func (c *compiler) keyOf(topologyKey string) int {
	if topologyKey == model.LabelHostname {
		return Host
	}
	return c.t.space.Labels.KeyIndex(topologyKey)
}

// spread compiles a constraint. Its counter counts only on places that the node
// inclusion policies admit and that have all of the keys.
func (c *compiler) spread(class *model.PodClass, sc *model.SpreadConstraint, options feasible.Set, keys []int) Spread {
	t := term{key: c.keyOf(sc.TopologyKey), selector: sc.Selector, namespaces: []string{class.Namespace}}
	filter, nodes, counted := c.counting(class, sc, keys)
	s := Spread{
		Counter: c.counter(t, filter, nodes, counted), Key: t.key, MaxSkew: sc.MaxSkew, MinDomains: int(sc.MinDomains), Hard: sc.Hard,
		group: -1, byNodeAffinity: sc.HonorNodeAffinity,
	}
	c.t.counters[s.Counter].bySpread = true
	if t.selects(class.Namespace, class.Labels) {
		s.Self = 1
	}
	if s.Key != Host {
		if counted != nil {
			options = options.Clone()
			options.And(counted)
		}
		s.options = options
		s.group = c.group(s.Counter, c.domains(s.Key, nodes, options))
		s.Domains = c.t.groups[s.group].domains
	}
	return s
}

// group returns the group of a counter and a list of domains. Constraints that differ only
// in maxSkew, minDomains or the class share one, so that a change of a count updates few
// minima.
func (c *compiler) group(counter int, domains []int32) int {
	c.id = binary.AppendUvarint(c.id[:0], uint64(counter))
	for _, d := range domains {
		c.id = binary.AppendUvarint(c.id, uint64(d))
	}
	i, ok := c.byGroup[string(c.id)]
	if !ok {
		i = len(c.t.groups)
		c.byGroup[string(c.id)] = i
		c.t.groups = append(c.t.groups, group{counter, domains})
		c.t.counters[counter].groups = append(c.t.counters[counter].groups, i)
	}
	return i
}

// hardKeys are the label keys of the constraints that the scheduler enforces, ascending.
func (c *compiler) hardKeys(constraints []model.SpreadConstraint) []int {
	var keys []int
	for i := range constraints {
		if constraints[i].Hard {
			keys = withLabel(keys, c.keyOf(constraints[i].TopologyKey))
		}
	}
	slices.Sort(keys)
	return keys
}

// counting returns which nodes and options count for a constraint, nil for all, with a
// text that is equal where they are.
func (c *compiler) counting(class *model.PodClass, sc *model.SpreadConstraint, keys []int) (filter string, nodes, options feasible.Set) {
	if sc.HonorNodeAffinity && (len(class.NodeRequirements) > 0 || len(class.NodeAlternatives) > 0) {
		filter = "a" + feasible.RequirementsKey(class.NodeRequirements)
		for _, rs := range class.NodeAlternatives {
			filter += "|" + feasible.RequirementsKey(rs)
		}
		affinity := feasible.NodeAffinityOf(class)
		nodes, options = c.t.space.Labels.NodesMeeting(affinity), c.t.space.Labels.OptionsMeeting(affinity)
	}
	if sc.HonorTaints {
		filter += "t"
		for _, tol := range class.Tolerations {
			filter += "|" + tol.Key + "=" + tol.Value + ":" + string(tol.Effect)
			if tol.Exists {
				filter += "!"
			}
		}
		n, o := c.t.space.NodesTolerating(class.Tolerations, false), c.t.space.Tolerating(class.Tolerations, false)
		if nodes != nil {
			n.And(nodes)
			o.And(options)
		}
		nodes, options = n, o
	}
	// The scheduler does not count a node that lacks the label of one of the pod's
	// enforced constraints for any of them.
	if sc.Hard && (len(keys) > 1 || len(keys) == 1 && keys[0] != c.keyOf(sc.TopologyKey)) {
		if n, o, some := c.having(keys); some {
			filter += "k" + fmt.Sprint(keys)
			if nodes != nil {
				n.And(nodes)
				o.And(options)
			}
			nodes, options = n, o
		}
	}
	return filter, nodes, options
}

// having returns the nodes and options that have all of the keys, and whether some do
// not. The caller owns the sets.
func (c *compiler) having(keys []int) (nodes, options feasible.Set, some bool) {
	nodes, options = feasible.Full(len(c.t.space.Problem.Nodes)), feasible.Full(len(c.t.space.Options))
	for _, k := range keys {
		for n := range c.t.space.Problem.Nodes {
			if c.t.space.Labels.NodeValue(k, n) < 0 {
				nodes.Remove(n)
				some = true
			}
		}
		for o := range c.t.space.Options {
			if c.t.space.Labels.OptionValue(k, o) < 0 {
				options.Remove(o)
				some = true
			}
		}
	}
	return nodes, options, some
}

// domains lists the domains of a key in which there are nodes or options, ascending.
// Nodes nil means all of them. Callers share the list and do not change it.
func (c *compiler) domains(key int, nodes, options feasible.Set) []int32 {
	if len(options) == 0 || nodes != nil {
		return c.listDomains(key, nodes, options)
	}
	id := spanID{key: key, options: &options[0]}
	list, ok := c.byOptions[id]
	if !ok {
		list = c.listDomains(key, nodes, options)
		c.byOptions[id] = list
	}
	return list
}

func (c *compiler) listDomains(key int, nodes, options feasible.Set) []int32 {
	seen := make([]bool, c.t.space.Labels.Values(key))
	for n := range c.t.space.Problem.Nodes {
		node := &c.t.space.Problem.Nodes[n]
		if v := c.t.space.Labels.NodeValue(key, n); v >= 0 && node.State != model.NodeLeaving && (nodes == nil || nodes.Has(n)) {
			seen[v] = true
		}
	}
	for o := range options.All {
		if v := c.t.space.Labels.OptionValue(key, o); v >= 0 {
			seen[v] = true
		}
	}
	var out []int32
	for v, ok := range seen {
		if ok {
			out = append(out, int32(v))
		}
	}
	return out
}

// count counts the pods that run. Shapes lists, for each shape of the problem, the
// counters that count its pods.
func (c *compiler) count(shapes [][]int) *Counts {
	out := newCounts(c.t)
	p := c.t.space.Problem
	for n := range p.Nodes {
		if p.Nodes[n].State == model.NodeLeaving {
			continue
		}
		for _, b := range p.Nodes[n].Bound {
			if b.Shape >= 0 && b.Shape < len(p.Shapes) && b.Count > 0 {
				for _, at := range shapes[b.Shape] {
					out.add(at, Place{ID: n, Node: n, Option: -1}, b.Count)
				}
			}
		}
	}
	return out
}
