package feasible

import (
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Absent is the value of a label that a node does not carry.
const Absent = int32(-1)

// Labels that every node of ours ends up with, so that pods and daemons that
// ask for them may be planned.
const (
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
)

// Values that stand for something that no requirement can name.
const (
	// valueNew is the hostname of a machine that does not exist yet.
	valueNew = "\x00new"
	// valueAny is a label value that nobody asks for, where a pool only says
	// that the label exists.
	valueAny = "\x00any"
)

// maxChoices bounds the combinations of open labels per pool and instance
// type; beyond it the later combinations are not offered.
const maxChoices = 256

// labels interns the label keys that some rule of the problem looks at, and
// the values that options and nodes have for them.
type labels struct {
	keys     []string
	index    map[string]int
	dicts    []dict
	named    [][]string // values that rules name, per key
	varies   []bool     // per key: differs between ways to buy one instance type
	picked   []bool     // per key: left to the pool or the buyer
	ofOption [][]int32  // per key, per option
	ofNode   [][]int32  // per key, per node
}

type dict struct {
	names []string
	ids   map[string]int32
}

// few is up to how many names looking at all of them beats a map.
const few = 8

func (d *dict) id(name string) int32 {
	if len(d.names) <= few {
		if i := slices.Index(d.names, name); i >= 0 {
			return int32(i)
		}
	} else if id, ok := d.ids[name]; ok {
		return id
	}
	id := int32(len(d.names))
	d.names = append(d.names, name)
	d.ids[name] = id
	return id
}

// newLabels collects the keys that requirements and topology terms mention.
func newLabels(p *model.Problem) labels {
	l := labels{index: map[string]int{}}
	for _, key := range []string{model.LabelZone, model.LabelCapacityType, model.LabelInstanceType, model.LabelNodePool} {
		l.key(key)
	}
	for i := range p.Pools {
		l.mention(p.Pools[i].Requirements)
		for key := range p.Pools[i].Labels { // order does not matter: sorted below
			l.key(key)
		}
		for d := range p.Pools[i].Daemons {
			for _, rs := range p.Pools[i].Daemons[d].Requirements {
				l.mention(rs)
			}
		}
	}
	for i := range p.Classes {
		l.mentionClass(&p.Classes[i])
	}
	for i := range p.Shapes {
		for t := range p.Shapes[i].AntiAffinity {
			l.key(p.Shapes[i].AntiAffinity[t].TopologyKey)
		}
	}
	l.sortKeys()
	return l
}

func (l *labels) mentionClass(c *model.PodClass) {
	l.mention(c.NodeRequirements)
	for _, rs := range c.NodeAlternatives {
		l.mention(rs)
	}
	for _, rs := range c.VolumeAlternatives {
		l.mention(rs)
	}
	for _, pref := range c.NodePreferences {
		l.mention(pref.Requirements)
	}
	for i := range c.Spread {
		l.key(c.Spread[i].TopologyKey)
	}
	for i := range c.Affinity {
		l.key(c.Affinity[i].TopologyKey)
	}
	for i := range c.AntiAffinity {
		l.key(c.AntiAffinity[i].TopologyKey)
	}
	for i := range c.Preferences {
		l.key(c.Preferences[i].Term.TopologyKey)
	}
}

func (l *labels) mention(rs model.Requirements) {
	for i := range rs {
		k := l.key(rs[i].Key)
		for _, v := range rs[i].Values {
			if !slices.Contains(l.named[k], v) {
				l.named[k] = append(l.named[k], v)
			}
		}
	}
}

func (l *labels) key(name string) int {
	if k, ok := l.index[name]; ok {
		return k
	}
	k := len(l.keys)
	l.index[name] = k
	l.keys = append(l.keys, name)
	l.named = append(l.named, nil)
	return k
}

// sortKeys numbers the keys by name, so that the numbering does not depend on
// the order of any map.
func (l *labels) sortKeys() {
	named := make(map[string][]string, len(l.keys))
	for k, name := range l.keys {
		slices.Sort(l.named[k])
		named[name] = l.named[k]
	}
	slices.Sort(l.keys)
	l.dicts = make([]dict, len(l.keys))
	l.ofOption = make([][]int32, len(l.keys))
	l.varies, l.picked = make([]bool, len(l.keys)), make([]bool, len(l.keys))
	for k, name := range l.keys {
		l.index[name] = k
		l.named[k] = named[name]
		l.dicts[k].ids = map[string]int32{}
	}
}

// addNodes interns the labels of existing nodes.
func (l *labels) addNodes(p *model.Problem) {
	l.ofNode = make([][]int32, len(l.keys))
	for k, key := range l.keys {
		values := make([]int32, len(p.Nodes))
		for n := range p.Nodes {
			values[n] = Absent
			if v, ok := nodeLabel(&p.Nodes[n], key); ok {
				values[n] = l.dicts[k].id(v)
			}
		}
		l.ofNode[k] = values
	}
}

func nodeLabel(n *model.Node, key string) (string, bool) {
	if v, ok := n.Labels[key]; ok {
		return v, true
	}
	onItsWay := n.State == model.NodeLaunching || n.State == model.NodeRegistered
	switch key {
	case labelRegistered, labelInitialized:
		return "true", onItsWay
	case model.LabelHostname:
		return valueNew, n.State == model.NodeLaunching
	case model.LabelNodePool:
		return n.Pool, n.Pool != ""
	}
	return "", false
}

// appendOption records the labels of the next option.
func (l *labels) appendOption(values []int32, c choice) {
	for k := range l.keys {
		v := values[k]
		if o := c.set[k]; o != unset {
			v = o
		}
		l.ofOption[k] = append(l.ofOption[k], v)
	}
}

// table answers one requirement for every value of its key; entry 0 is the
// answer for an absent label.
func (l *labels) table(r model.Requirement) (key int, table []bool) {
	key = l.index[r.Key]
	names := l.dicts[key].names
	table = make([]bool, len(names)+1)
	table[0] = r.Matches("", false)
	if r.Operator == model.In || r.Operator == model.NotIn {
		for i := range names {
			table[i+1] = r.Operator == model.NotIn
		}
		for _, v := range r.Values {
			if id, ok := l.dicts[key].ids[v]; ok {
				table[id+1] = r.Operator == model.In
			}
		}
		return key, table
	}
	for i, name := range names {
		table[i+1] = r.Matches(name, true)
	}
	return key, table
}

const unset = int32(-2)

// choice fixes the labels that a pool or an instance type leaves to the buyer,
// and holds the pool's requirements on all the others.
type choice struct {
	set      []int32 // per key; unset where the type and offering decide
	template *template
}

// admits reports whether an offering's labels meet the pool's requirements.
func (c *choice) admits(values []int32) bool {
	for _, t := range c.template.tables {
		if c.set[t.key] == unset && !t.table[values[t.key]+1] {
			return false
		}
	}
	return true
}

// template is what a pool says about labels.
type template struct {
	tables []keyTable
	open   []openKey
	fixed  []int32
	reqs   model.Requirements
	// common are the combinations of the labels that the pool leaves open, once
	// they are known.
	common []choice
}

type keyTable struct {
	key   int
	table []bool
}

// openKey is a label whose value may be picked.
type openKey struct {
	key    int
	values []int32
}

// forPool splits the pool's requirements into those on labels that the cloud
// sets, which filter, and those on labels of its own, which leave a choice.
func (l *labels) forPool(pool *model.Pool, cat *catalog) *template {
	t := &template{fixed: make([]int32, len(l.keys))}
	for k := range t.fixed {
		t.fixed[k] = unset
	}
	t.reqs = slices.Clone(pool.Requirements)
	for k, key := range l.keys {
		if v, ok := pool.Labels[key]; ok && !mentions(pool.Requirements, key) {
			t.reqs = append(t.reqs, model.Requirement{Key: key, Operator: model.In, Values: []string{v}})
		}
		switch key {
		case model.LabelNodePool:
			t.fixed[k] = l.dicts[k].id(pool.Name)
		case model.LabelHostname:
			t.fixed[k] = l.dicts[k].id(valueNew)
		case labelRegistered, labelInitialized:
			t.fixed[k] = l.dicts[k].id("true")
		}
	}
	for k, key := range l.keys {
		if t.fixed[k] == unset && !cat.sets[k] && mentions(t.reqs, key) {
			t.open = append(t.open, openKey{k, l.openValues(k, t.reqs)})
			l.picked[k] = true
			l.varies[k] = l.varies[k] || len(t.open[len(t.open)-1].values) > 1
		}
	}
	for _, r := range t.reqs {
		k, table := l.table(r)
		t.tables = append(t.tables, keyTable{k, table})
	}
	return t
}

func mentions(rs model.Requirements, key string) bool {
	return slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == key })
}

// openValues lists the values that a pool's own label may take: those that
// some rule names and the pool allows, and one that nobody names.
func (l *labels) openValues(k int, reqs model.Requirements) []int32 {
	key := l.keys[k]
	allowed := func(v string, present bool) bool {
		for _, r := range reqs {
			if r.Key == key && !r.Matches(v, present) {
				return false
			}
		}
		return true
	}
	var values []int32
	for _, v := range l.named[k] {
		if allowed(v, true) {
			values = append(values, l.dicts[k].id(v))
		}
	}
	if allowed("", false) {
		return append(values, Absent)
	}
	if allowed(valueAny, true) {
		return append(values, l.dicts[k].id(valueAny))
	}
	if len(values) == 0 {
		// Only comparisons are left: the integer next to a bound, if any fits.
		for _, r := range reqs {
			if r.Key != key || len(r.Values) != 1 {
				continue
			}
			bound, err := strconv.ParseInt(r.Values[0], 10, 64)
			if err != nil {
				continue
			}
			for _, v := range []int64{bound, bound + 1, bound - 1} {
				if text := strconv.FormatInt(v, 10); allowed(text, true) {
					return append(values, l.dicts[k].id(text))
				}
			}
		}
	}
	return values
}

// choices lists the combinations of open labels for one instance type.
func (l *labels) choices(t *template, ct *catalogType) []choice {
	if t.common == nil {
		t.common = t.combine([]choice{{set: t.fixed, template: t}}, t.open)
	}
	var open []openKey
	for _, o := range ct.open {
		if t.fixed[o.key] != unset {
			continue
		}
		var allowed []int32
		for _, v := range o.values {
			if tablesAdmit(t.tables, o.key, v) {
				allowed = append(allowed, v)
			}
		}
		open = append(open, openKey{o.key, allowed})
	}
	return t.combine(t.common, open)
}

// combine is every choice with every value of the open labels.
func (t *template) combine(out []choice, open []openKey) []choice {
	for _, o := range open {
		var next []choice
		for _, c := range out {
			for _, v := range o.values {
				set := slices.Clone(c.set)
				set[o.key] = v
				next = append(next, choice{set: set, template: t})
			}
		}
		out = next[:min(len(next), maxChoices)]
	}
	return out
}

func tablesAdmit(tables []keyTable, key int, value int32) bool {
	for _, t := range tables {
		if t.key == key && !t.table[value+1] {
			return false
		}
	}
	return true
}

// KeyIndex returns the number of a label key, or -1 when no rule mentions it.
func (s *Space) KeyIndex(key string) int {
	if k, ok := s.labels.index[key]; ok {
		return k
	}
	return -1
}

// Varies reports whether options of one instance type may differ in the label:
// then a new machine's value is not settled by its type.
func (s *Space) Varies(key int) bool {
	name := s.labels.keys[key]
	return s.labels.varies[key] || name == model.LabelZone || name == model.LabelCapacityType
}

// LeftToChance are the options with a value of the label that nobody names: which
// one a machine gets, and with whom it shares it, is not known. It is nil if there
// are none.
func (s *Space) LeftToChance(key int) Set {
	chance, ok := s.chance(key)
	if !ok {
		return nil
	}
	out := NewSet(len(s.Options))
	for o, v := range s.labels.ofOption[key] {
		if v == chance {
			out.Add(o)
		}
	}
	return out
}

// ByChance reports whether an option is one of those of [Space.LeftToChance].
func (s *Space) ByChance(key, option int) bool {
	chance, ok := s.chance(key)
	return ok && s.labels.ofOption[key][option] == chance
}

// chance is the value of a label that nobody names, if there is one.
func (s *Space) chance(key int) (int32, bool) {
	if key < 0 || !s.labels.picked[key] {
		return 0, false
	}
	chance, ok := s.labels.dicts[key].ids[valueAny]
	return chance, ok
}

// Offered reports whether the label's value is part of what the cloud offers,
// rather than picked by the pool or the buyer.
func (s *Space) Offered(key int) bool { return !s.labels.picked[key] }

// Keys are the label keys that rules mention, sorted.
func (s *Space) Keys() []string { return s.labels.keys }

// OptionValue returns the number of an option's value for a key, or [Absent].
func (s *Space) OptionValue(key, option int) int32 { return s.labels.ofOption[key][option] }

// NodeValue returns the number of a node's value for a key, or [Absent].
func (s *Space) NodeValue(key, node int) int32 { return s.labels.ofNode[key][node] }

// Values is how many different values the key has; ValueName names one.
func (s *Space) Values(key int) int { return len(s.labels.dicts[key].names) }

// ValueName returns the text of a value, and whether it is a value that can be
// written down rather than a stand-in.
func (s *Space) ValueName(key int, value int32) (string, bool) {
	if value == Absent {
		return "", false
	}
	name := s.labels.dicts[key].names[value]
	return name, name != valueAny && name != valueNew
}
