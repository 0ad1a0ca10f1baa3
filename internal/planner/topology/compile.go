package topology

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Compile binds the topology terms of all classes to counters, and counts the pods that
// run. Levels are those of each class of the problem, in its order; a class that is not
// valid has none. Nodes that are leaving do not count.
func Compile(s *feasible.Space, levels [][]Level) *Topology {
	c := &compiler{
		t:      &Topology{space: s, rules: make([][]Rules, len(levels))},
		byTerm: map[string]int{}, byOptions: map[spanID][]int32{}, byGroup: map[string]int{}, hosts: map[string][]int32{},
		limited: map[spanID]bitset.Set{}, filters: map[string]string{},
	}
	c.kinds = kinds{t: c.t, byCounters: map[string]int32{}, carrying: map[int32][]int32{}}
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
	for i := range p.Classes {
		c.link(i, l)
	}
	shapes := make([]countedAs, len(p.Shapes))
	for i := range p.Shapes {
		adds, _ := l.find(&p.Shapes[i])
		shapes[i] = c.kinds.countedAs(adds)
	}
	c.kinds.bind(l.twins)
	c.t.running = c.count(shapes)
	return c.t
}

// link finds the counters that concern the pods of a class.
func (c *compiler) link(class int, l *linker) {
	adds, repelled := l.find(&c.t.space.Problem.Classes[class].PodShape)
	c.t.adds = append(c.t.adds, adds)
	c.t.counts = append(c.t.counts, c.kinds.countedAs(adds))
	c.added = slices.Grow(c.added, len(c.t.counters)-len(c.added))[:len(c.t.counters)] // find may have made some
	for _, at := range adds {
		c.added[at] = class + 1
	}
	var inverse []AntiAffinity
	byHost := repelled[:0] // without twins
	for _, at := range repelled {
		if c.t.counters[at].pairwise() {
			byHost = append(byHost, at)
		} else {
			inverse = append(inverse, AntiAffinity{Counter: int(at), Key: c.t.counters[at].key, Self: c.added[at] == class+1})
		}
	}
	for level := range c.t.rules[class] {
		c.t.rules[class][level].Inverse, c.t.rules[class][level].added = inverse, len(adds) > 0
	}
	c.kinds.repelled = append(c.kinds.repelled, byHost)
}

// compiler makes a topology, and remembers what many terms have in common.
type compiler struct {
	t *Topology
	// byTerm finds counters by [term.appendID].
	byTerm map[string]int
	// byOptions finds lists of domains, limited options that count, byGroup groups by
	// counter and domains.
	byOptions map[spanID][]int32
	limited   map[spanID]bitset.Set
	byGroup   map[string]int
	// hosts are lists of nodes that count, by their filter.
	hosts map[string][]int32
	// filters gives the texts of filters short ones. counted is what counts for the
	// constraints of the class at hand.
	filters map[string]string
	counted map[countedBy]countedPlaces
	kinds   kinds
	// added is, by counter, 1 more than the last class of which it counts pods.
	added []int
	// id is storage for the text that is looked up.
	id []byte
}

// spanID is what a list of domains depends on: which places count, by their filter, and
// the options of a level, which are recognized by their first word, since classes share
// them. Without a key it is what the options that count depend on.
type spanID struct {
	key     int
	filter  string
	options *uint64
}

// countedBy is what the places that count for a constraint of a class depend on.
type countedBy struct {
	affinity, taints bool
	// keys says that only places with the labels of all enforced constraints count.
	keys bool
}

// countedPlaces are nodes and options that count, nil for all. Equal filters have equal sets.
type countedPlaces struct {
	filter         string
	nodes, options bitset.Set
}

// class compiles the rules of one class, for which there is storage, but for the inverse
// ones.
func (c *compiler) class(index int, levels []Level) {
	spec := &c.t.space.Problem.Classes[index]
	c.counted = map[countedBy]countedPlaces{} // levels differ in preferences, which do not change it
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
			r.AntiAffinity = append(r.AntiAffinity, AntiAffinity{Counter: at, Key: t.key, Self: t.selects(spec.Namespace, spec.Labels)})
		}
		if l > 0 {
			continue // the first level has all counters of the class
		}
		for i := range spec.AntiAffinity {
			c.inverse(&spec.AntiAffinity[i])
		}
	}
}

// counter returns the counter of a term on the places that the sets leave, a new one if
// there is none yet.
func (c *compiler) counter(t term, filter string, nodes, options bitset.Set) int {
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
func (c *compiler) spread(class *model.PodClass, sc *model.SpreadConstraint, options bitset.Set, keys []int) Spread {
	t := term{key: c.keyOf(sc.TopologyKey), selector: sc.Selector, namespaces: []string{class.Namespace}}
	by := countedBy{
		affinity: sc.HonorNodeAffinity && (len(class.NodeRequirements) > 0 || len(class.NodeAlternatives) > 0),
		taints:   sc.HonorTaints,
		// The scheduler does not count a node that lacks the label of one of the pod's
		// enforced constraints for any of them.
		keys: sc.Hard && (len(keys) > 1 || len(keys) == 1 && keys[0] != t.key),
	}
	at, known := c.counted[by]
	if !known {
		at = c.counting(class, by, keys)
		c.counted[by] = at
	}
	s := Spread{
		Counter: c.counter(t, at.filter, at.nodes, at.options), Key: t.key, MaxSkew: sc.MaxSkew, MinDomains: int(sc.MinDomains), Hard: sc.Hard,
		group: -1, byNodeAffinity: sc.HonorNodeAffinity,
	}
	c.t.counters[s.Counter].bySpread = true
	if t.selects(class.Namespace, class.Labels) {
		s.Self = 1
	}
	switch {
	case s.Key != Host:
		s.options = c.options(&at, options)
		s.group = c.group(s.Counter, c.domains(s.Key, &at, options))
		s.Domains = c.t.groups[s.group].domains
	case !sc.Share: // a cap of one node's share knows no minimum
		s.group = c.hostGroup(s.Counter, &at)
	}
	return s
}

// hostGroup returns the group of a counter of hosts: all nodes that the scheduler sees and
// that count, also those that are leaving.
func (c *compiler) hostGroup(counter int, at *countedPlaces) int {
	if len(c.t.space.Problem.Nodes) == 0 {
		return -1
	}
	if groups := c.t.counters[counter].groups; len(groups) > 0 {
		return groups[0]
	}
	list, known := c.hosts[at.filter]
	if !known {
		for n := range c.t.space.Problem.Nodes {
			if c.t.exists(n) && (at.nodes == nil || at.nodes.Has(n)) {
				list = append(list, int32(n))
			}
		}
		c.hosts[at.filter] = list
	}
	return c.addGroup(counter, list)
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
		i = c.addGroup(counter, domains)
		c.byGroup[string(c.id)] = i
	}
	return i
}

func (c *compiler) addGroup(counter int, domains []int32) int {
	i := len(c.t.groups)
	c.t.groups = append(c.t.groups, group{counter, domains})
	c.t.counters[counter].groups = append(c.t.counters[counter].groups, i)
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

// counting returns the places that count for constraints of a class. Keys are those of
// its enforced constraints.
func (c *compiler) counting(class *model.PodClass, by countedBy, keys []int) countedPlaces {
	var out countedPlaces
	only := func(nodes, options bitset.Set) {
		if out.nodes != nil {
			nodes.And(out.nodes)
			options.And(out.options)
		}
		out.nodes, out.options = nodes, options
	}
	id := []byte(nil)
	if by.affinity {
		id = append(id, 'a')
		id = append(id, feasible.RequirementsKey(class.NodeRequirements)...)
		for _, rs := range class.NodeAlternatives {
			id = append(id, '|')
			id = append(id, feasible.RequirementsKey(rs)...)
		}
		affinity := feasible.NodeAffinityOf(class)
		only(c.t.space.Labels.NodesMeeting(affinity), c.t.space.Labels.OptionsMeeting(affinity))
	}
	if by.taints {
		id = append(id, 't')
		for _, tol := range class.Tolerations {
			id = fmt.Appendf(id, "|%s=%s:%s", tol.Key, tol.Value, tol.Effect)
			if tol.Exists {
				id = append(id, '!')
			}
		}
		only(c.t.space.NodesTolerating(class.Tolerations, false), c.t.space.Tolerating(class.Tolerations, false))
	}
	if by.keys {
		if nodes, options, some := c.having(keys); some {
			id = fmt.Appendf(id, "k%v", keys)
			only(nodes, options)
		}
	}
	if len(id) == 0 {
		return out
	}
	short, known := c.filters[string(id)]
	if !known {
		short = "f" + strconv.Itoa(len(c.filters))
		c.filters[string(id)] = short
	}
	out.filter = short
	return out
}

// having returns the nodes and options that have all of the keys, and whether some do
// not. The caller owns the sets.
func (c *compiler) having(keys []int) (nodes, options bitset.Set, some bool) {
	nodes, options = bitset.Full(len(c.t.space.Problem.Nodes)), bitset.Full(len(c.t.space.Options))
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

// options are those of a level that count. Callers share the set and do not change it.
func (c *compiler) options(at *countedPlaces, options bitset.Set) bitset.Set {
	if at.options == nil || len(options) == 0 {
		return options
	}
	id := spanID{filter: at.filter, options: &options[0]}
	set, known := c.limited[id]
	if !known {
		set = options.Clone()
		set.And(at.options)
		c.limited[id] = set
	}
	return set
}

// domains lists the domains of a key in which there are nodes that count, or options of a
// level that do, ascending. Callers share the list and do not change it.
func (c *compiler) domains(key int, at *countedPlaces, options bitset.Set) []int32 {
	if len(options) == 0 {
		return c.listDomains(key, at.nodes, nil)
	}
	id := spanID{key: key, filter: at.filter, options: &options[0]}
	list, ok := c.byOptions[id]
	if !ok {
		list = c.listDomains(key, at.nodes, c.options(at, options))
		c.byOptions[id] = list
	}
	return list
}

func (c *compiler) listDomains(key int, nodes, options bitset.Set) []int32 {
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

// count counts the pods that run. Shapes says how those of each shape of the problem count.
func (c *compiler) count(shapes []countedAs) *Counts {
	out := newCounts(c.t)
	p := c.t.space.Problem
	for n := range p.Nodes {
		if p.Nodes[n].State == model.NodeLeaving {
			continue
		}
		for _, b := range p.Nodes[n].Bound {
			if b.Shape >= 0 && b.Shape < len(p.Shapes) && b.Count > 0 {
				at := Place{ID: n, Node: n, Option: -1}
				for _, counter := range shapes[b.Shape].tallied {
					out.add(int(counter), at, b.Count)
				}
				out.residents.add(n, shapes[b.Shape].kind, b.Count)
			}
		}
	}
	return out
}
