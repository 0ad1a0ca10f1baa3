package feasible

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

// labelCompiler collects the labels that rules look at and numbers their values. It
// exists while a space is compiled: keys first, then catalogues, nodes and pools,
// which add values, then options. After that the values are complete and [LabelIndex]
// can answer.
type labelCompiler struct {
	// labels is what is being compiled.
	labels LabelIndex
	// named are the values that rules name, per key, sorted once all rules are read; their
	// numbers hold until then. Those of NodePools are there for labels that pods compare.
	named []dict
	// asked are the labels that pods and daemons ask for, not only NodePools.
	asked map[string]*askedLabel
	// demands are what pods ask of labels, each of a class or of an alternative of one.
	demands []model.Requirements
}

// newLabelCompiler collects the keys that requirements and topology terms mention.
func newLabelCompiler(p *model.Problem) *labelCompiler {
	l := &labelCompiler{asked: map[string]*askedLabel{}}
	l.labels.index = map[string]int{}
	for _, key := range []string{model.LabelZone, model.LabelCapacityType, model.LabelInstanceType, model.LabelNodePool} {
		l.ask(key)
	}
	for i := range p.Pools {
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
			l.domain(p.Shapes[i].AntiAffinity[t].TopologyKey)
		}
	}
	for _, rules := range classRules(p) {
		l.demands = append(l.demands, rules.Alternatives()...)
	}
	for i := range p.Pools {
		for _, r := range p.Pools[i].Requirements {
			if r.MinValues > 0 {
				l.domain(r.Key) // values are counted
			}
		}
	}
	for i := range p.Pools {
		l.mentionPool(p.Pools[i].Requirements)
		for key := range p.Pools[i].Labels { // order does not matter: sorted below
			l.key(key)
		}
	}
	l.sortKeys()
	return l
}

// mentionClass collects the keys of a class: those of its requirements on nodes, with
// their values, and those of its topology terms.
func (l *labelCompiler) mentionClass(c *model.PodClass) {
	l.mention(c.NodeRequirements)
	l.mention(c.Devices)
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
		l.domain(c.Spread[i].TopologyKey)
	}
	for i := range c.Affinity {
		l.domain(c.Affinity[i].TopologyKey)
	}
	for i := range c.AntiAffinity {
		l.domain(c.AntiAffinity[i].TopologyKey)
	}
	for i := range c.Preferences {
		l.domain(c.Preferences[i].Term.TopologyKey)
	}
}

// mention collects the keys of what pods or daemons require, and the values that they name.
func (l *labelCompiler) mention(rs model.Requirements) {
	for i := range rs {
		asked := l.ask(rs[i].Key)
		if comparesNumbers(rs[i].Operator) { // the others tell single values apart
			asked.compared, asked.numbers = true, true
		}
		l.name(&rs[i])
	}
}

// mentionPool is mention for what a NodePool requires. Of values that pods do not name one is
// as good as another, unless they are compared.
func (l *labelCompiler) mentionPool(rs model.Requirements) {
	for i := range rs {
		if asked := l.asked[rs[i].Key]; asked != nil && asked.compared {
			l.name(&rs[i])
		} else {
			l.key(rs[i].Key)
		}
	}
}

// name collects the key of a requirement and the values that it names.
func (l *labelCompiler) name(r *model.Requirement) {
	k := l.key(r.Key)
	for _, v := range r.Values {
		l.named[k].id(v)
	}
}

// key numbers a key, in the order in which they are met (see sortKeys).
func (l *labelCompiler) key(name string) int {
	if k, ok := l.labels.index[name]; ok {
		return k
	}
	k := len(l.labels.keys)
	l.labels.index[name] = k
	l.labels.keys = append(l.labels.keys, name)
	l.named = append(l.named, dict{ids: map[string]int32{}})
	return k
}

// sortKeys numbers the keys by name, so that the numbering does not depend on
// the order of any map.
func (l *labelCompiler) sortKeys() {
	named := make(map[string]dict, len(l.labels.keys))
	for k, name := range l.labels.keys {
		slices.Sort(l.named[k].names)
		named[name] = l.named[k]
	}
	slices.Sort(l.labels.keys)
	l.labels.dicts = make([]dict, len(l.labels.keys))
	l.labels.options.values = make([][]int32, len(l.labels.keys))
	l.labels.varies, l.labels.picked = make([]bool, len(l.labels.keys)), make([]bool, len(l.labels.keys))
	for k, name := range l.labels.keys {
		l.labels.index[name] = k
		l.named[k] = named[name]
		l.labels.dicts[k].ids = map[string]int32{}
	}
}

// addNodes interns the labels of existing nodes.
func (l *labelCompiler) addNodes(p *model.Problem) {
	l.labels.nodes.count = len(p.Nodes)
	l.labels.nodes.values = make([][]int32, len(l.labels.keys))
	for k, key := range l.labels.keys {
		values := make([]int32, len(p.Nodes))
		for n := range p.Nodes {
			values[n] = Absent
			if v, ok := noderules.NodeLabel(&p.Nodes[n], key); ok {
				values[n] = l.labels.dicts[k].id(v)
			}
		}
		l.labels.nodes.values[k] = values
	}
}

// appendOption records the labels of the next option: those of its offering, and over
// them what the pool or the choice fixes.
func (l *labelCompiler) appendOption(values []int32, c choice) {
	l.labels.options.count++
	for k := range l.labels.keys {
		v := values[k]
		if o := c.set[k]; o != unset {
			v = o
		}
		l.labels.options.values[k] = append(l.labels.options.values[k], v)
	}
}

// reserve makes room for the labels of n options.
func (l *labelCompiler) reserve(n int) {
	for k := range l.labels.options.values {
		l.labels.options.values[k] = make([]int32, 0, n)
	}
}

// finish answers the requirements of the problem's rules in advance: of the DaemonSets
// of the given pools and of all classes. Precondition: nodes and options are complete.
func (l *labelCompiler) finish(p *model.Problem, pools []Pool) {
	x := &l.labels
	x.options.masks, x.nodes.masks = map[string]bitset.Set{}, map[string]bitset.Set{}
	x.options.lists, x.nodes.lists = map[int]valueLists{}, map[int]valueLists{}
	for _, pool := range pools {
		for d := range p.Pools[pool.Index].Daemons {
			for _, rs := range p.Pools[pool.Index].Daemons[d].Requirements {
				x.remember(&x.options, rs)
			}
		}
	}
	both := func(rs model.Requirements) {
		x.remember(&x.options, rs)
		x.remember(&x.nodes, rs)
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		both(c.NodeRequirements)
		both(c.Devices)
		for _, rs := range c.NodeAlternatives {
			both(rs)
		}
		for _, rs := range c.VolumeAlternatives {
			both(rs)
		}
		if p.Policy.IgnorePreferences {
			continue
		}
		for _, pref := range c.NodePreferences {
			both(pref.Requirements)
		}
	}
}

// askedLabel is what pods and daemons ask of a label.
type askedLabel struct {
	// compared says that they compare values with a number, or count pods by them. Otherwise
	// all values are alike to them but those that they name.
	compared bool
	// numbers says that they compare values with a number.
	numbers bool
	// demands are what classes demand of it, once something has asked for it.
	demands *labelDemands
}

// labelDemands are what classes demand of a label.
type labelDemands struct {
	// none says that some class demands nothing, so that it may use any value.
	none bool
	// named are the values of which a class demands one, others what classes demand otherwise.
	named  map[string]bool
	others map[string]model.Requirements
}

// domain collects a key by which pods are counted.
func (l *labelCompiler) domain(key string) { l.ask(key).compared = true }

// ask collects a key that pods or daemons ask for.
func (l *labelCompiler) ask(key string) *askedLabel {
	l.key(key)
	if l.asked[key] == nil {
		l.asked[key] = &askedLabel{}
	}
	return l.asked[key]
}

// useful are those of the values of a label that some class may use, or the first where no
// class may use any. Values by which pods are counted stay.
func (l *labelCompiler) useful(k int, values []int32) []int32 {
	asked := l.asked[l.labels.keys[k]]
	if len(values) < 2 || asked == nil || asked.compared {
		return values
	}
	demands := l.demandsFor(l.labels.keys[k])
	if demands.none {
		return values
	}
	out := slices.DeleteFunc(slices.Clone(values), func(v int32) bool {
		return !demands.meets(l.labels.text(k, v))
	})
	if len(out) == 0 {
		return values[:1]
	}
	return out
}

// demandsFor is what classes demand of a label, nothing where none asks for it.
func (l *labelCompiler) demandsFor(key string) *labelDemands {
	asked := l.asked[key]
	if asked == nil {
		return &labelDemands{}
	}
	if asked.demands == nil {
		asked.demands = l.demandsOn(key)
	}
	return asked.demands
}

// demandsOn collects what classes demand of a label.
func (l *labelCompiler) demandsOn(key string) *labelDemands {
	d := &labelDemands{named: map[string]bool{}, others: map[string]model.Requirements{}}
	for _, rs := range l.demands {
		var own model.Requirements
		for _, r := range rs {
			if r.Key == key {
				own = append(own, r)
			}
		}
		switch {
		case len(own) == 0:
			d.none = true
		case len(own) == 1 && own[0].Operator == model.In:
			for _, v := range own[0].Values {
				d.named[v] = true
			}
		default:
			d.others[RequirementsKey(own)] = own
		}
	}
	return d
}

// meets reports whether some class may use a value.
func (d *labelDemands) meets(value string, present bool) bool {
	if present && d.named[value] {
		return true
	}
	for _, rs := range d.others { // order does not matter
		if !slices.ContainsFunc(rs, func(r model.Requirement) bool { return !r.Matches(value, present) }) {
			return true
		}
	}
	return false
}
