package planner

import (
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// class is a model.PodClass prepared for placing.
type class struct {
	index int
	spec  *model.PodClass
	// own is what every pod takes of each dimension; shared are the disks that
	// all its pods use together and that take a slot only once per machine.
	own    []int64
	shared []model.Volume
	levels []level
	topo   *topology.Class
	// invalid says what is wrong with the class, empty when nothing is.
	invalid string
	// priority is the class's own or that of a class that waits for it.
	priority int32
	// depth is how many affinities have to be served before this class.
	depth int
	// bound is 2 for classes with per-machine topology rules of their own, 1 for
	// those with others, else 0.
	bound int
	// freedom is 0 for a class for which nothing can be bought, else 1.
	freedom int
	// together marks classes that have to meet others on one machine.
	together bool
}

// level is one state of a class's preferences, from all honoured to none.
type level struct {
	// options can be bought for one pod right now; static numbers the interned
	// set of options that labels, taints and ports allow, whatever the size.
	options feasible.Set
	static  int
	nodes   feasible.Set
	// given names the preference that was given up to get here.
	given string
}

// compileClasses prepares all classes of the space's problem.
func compileClasses(s *feasible.Space) ([]class, []topology.Class) {
	p := s.Problem
	classes, topos := make([]class, len(p.Classes)), make([]topology.Class, len(p.Classes))
	k := compiler{space: s, soft: hasSoftTaints(p), grounds: map[nodeRules]level{}, holding: map[string]feasible.Set{}}
	// Most classes have one level.
	levels, rules := make([]level, len(classes)), make([]topology.Level, len(classes))
	for i := range p.Classes {
		c := &classes[i]
		c.index, c.spec, c.topo = i, &p.Classes[i], &topos[i]
		c.levels = levels[i : i : i+1]
		c.topo.Index, c.topo.Levels = i, rules[i:i:i+1]
		c.priority = c.spec.Priority
		if err := feasible.ValidateClass(c.spec, p.Axes); err != nil {
			c.invalid = err.Error()
			continue
		}
		c.own = s.Size(c.spec)
		for _, v := range c.spec.Volumes {
			if d := s.DriverDim(v.Driver); v.ID != "" && d >= 0 && !slices.Contains(c.shared, v) {
				c.shared = append(c.shared, v)
				c.own[d]--
			}
		}
		k.addLevels(c)
	}
	return classes, topos
}

// compiler prepares classes, and remembers what many of them have in common.
type compiler struct {
	space *feasible.Space
	soft  bool
	// grounds are levels without preferences and sizes, by what they depend on;
	// holding the options that hold a pod, by size and static set.
	grounds map[nodeRules]level
	holding map[string]feasible.Set
	key     []byte
}

// nodeRules are what a class says of nodes, by where it is. Classes that say
// nothing have it in common.
type nodeRules struct {
	requirements          *model.Requirement
	alternatives, volumes *model.Requirements
	tolerations           *model.Toleration
	ports                 *model.HostPort
}

func firstOf[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// ground is the level of a class with all preferences given up, whatever its size.
func (k *compiler) ground(c *model.PodClass) level {
	rules := nodeRules{firstOf(c.NodeRequirements), firstOf(c.NodeAlternatives), firstOf(c.VolumeAlternatives), firstOf(c.Tolerations), firstOf(c.HostPorts)}
	base, known := k.grounds[rules]
	if !known {
		s := k.space
		base = level{static: s.Intern(s.Static(c)), nodes: s.NodesMeeting(c, true)}
		base.nodes.And(s.NodesTolerating(c.Tolerations, false))
		k.grounds[rules] = base
	}
	return base
}

// options can be bought for one pod of the class. Classes with the same choice
// share one set, which others may recognize.
func (k *compiler) options(c *class, static int) feasible.Set {
	s := k.space
	size := c.size(s)
	k.key = binary.AppendVarint(k.key[:0], int64(static))
	for _, v := range size {
		k.key = binary.AppendVarint(k.key, v)
	}
	set, known := k.holding[string(k.key)]
	if !known {
		set = s.Holding(size)
		set.And(s.Available)
		set.And(s.Interned(static))
		set = s.Interned(s.Intern(set))
		k.holding[string(k.key)] = set
	}
	return set
}

func hasSoftTaints(p *model.Problem) bool {
	soft := func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule }
	for i := range p.Pools {
		if slices.ContainsFunc(p.Pools[i].Taints, soft) {
			return true
		}
	}
	for i := range p.Nodes {
		if slices.ContainsFunc(p.Nodes[i].Taints, soft) {
			return true
		}
	}
	return false
}

// size is what one pod takes on a machine that has none of its shared disks.
func (c *class) size(s *feasible.Space) []int64 {
	if len(c.shared) == 0 {
		return c.own
	}
	size := slices.Clone(c.own)
	for _, v := range c.shared {
		size[s.DriverDim(v.Driver)]++
	}
	return size
}

// wishes is the state of preferences while levels are derived.
type wishes struct {
	affinity, anti []model.AffinityPreference
	nodes          []model.NodePreference
	spread         []model.SpreadConstraint
	softTaints     bool
}

// addLevels derives the levels: preferences are given up one at a time, pod
// affinity first, then anti-affinity, node affinity, ScheduleAnyway and
// PreferNoSchedule taints. Of several terms of one kind the lightest goes
// first; of node affinity terms only the heaviest is honoured at a time, and
// the next one takes its place.
func (k *compiler) addLevels(c *class) {
	s := k.space
	w := wishes{softTaints: k.soft}
	if !s.Problem.Policy.IgnorePreferences {
		for _, pref := range c.spec.Preferences {
			if pref.Anti {
				w.anti = append(w.anti, pref)
			} else {
				w.affinity = append(w.affinity, pref)
			}
		}
		heavierFirst := func(a, b model.AffinityPreference) int { return int(b.Weight) - int(a.Weight) }
		slices.SortStableFunc(w.affinity, heavierFirst)
		slices.SortStableFunc(w.anti, heavierFirst)
		w.nodes = slices.Clone(c.spec.NodePreferences)
		slices.SortStableFunc(w.nodes, func(a, b model.NodePreference) int { return int(b.Weight) - int(a.Weight) })
		for i := range c.spec.Spread {
			if !c.spec.Spread[i].Hard {
				w.spread = append(w.spread, c.spec.Spread[i])
			}
		}
	}
	base := k.ground(c.spec)
	base.options = k.options(c, base.static)
	if base.options.Any() {
		c.freedom = 1
	}
	c.addLevel(s, base, &w, "")
	for {
		given, ok := w.giveUp()
		if !ok {
			return
		}
		c.addLevel(s, base, &w, given)
	}
}

// giveUp drops the next preference and names it.
func (w *wishes) giveUp() (string, bool) {
	switch {
	case len(w.affinity) > 0:
		last := len(w.affinity) - 1
		key := w.affinity[last].Term.TopologyKey
		w.affinity = w.affinity[:last]
		return "preferred pod affinity on " + key, true
	case len(w.anti) > 0:
		last := len(w.anti) - 1
		key := w.anti[last].Term.TopologyKey
		w.anti = w.anti[:last]
		return "preferred pod anti-affinity on " + key, true
	case len(w.nodes) > 0:
		given := w.nodes[0].Requirements.String()
		w.nodes = w.nodes[1:]
		return "preferred node affinity " + given, true
	case len(w.spread) > 0:
		last := len(w.spread) - 1
		key := w.spread[last].TopologyKey
		w.spread = w.spread[:last]
		return "spread over " + key + " (ScheduleAnyway)", true
	case w.softTaints:
		w.softTaints = false
		return "PreferNoSchedule taints", true
	}
	return "", false
}

func (c *class) addLevel(s *feasible.Space, base level, w *wishes, given string) {
	l := level{options: base.options, static: base.static, nodes: base.nodes, given: given}
	narrow := func(set feasible.Set) {
		static := s.Interned(l.static).Clone()
		static.And(set)
		l.static = s.Intern(static)
		l.options = l.options.Clone()
		l.options.And(set)
	}
	if len(w.nodes) > 0 {
		if set := s.Matching(w.nodes[0].Requirements); set != nil {
			narrow(set)
		}
		if set := s.NodesMatching(w.nodes[0].Requirements); set != nil {
			l.nodes = l.nodes.Clone()
			l.nodes.And(set)
		}
	}
	if w.softTaints {
		narrow(s.Tolerating(c.spec.Tolerations, true))
		l.nodes = l.nodes.Clone()
		l.nodes.And(s.NodesTolerating(c.spec.Tolerations, true))
	}
	t := topology.Level{Options: base.options, Affinity: jointly(c.spec.Affinity), Anti: slices.Clone(c.spec.AntiAffinity)}
	for i := range c.spec.Spread {
		if c.spec.Spread[i].Hard {
			t.Spread = append(t.Spread, c.spec.Spread[i])
		}
	}
	t.Spread = append(t.Spread, w.spread...)
	for i := range w.affinity {
		t.Affinity = append(t.Affinity, w.affinity[i].Term)
	}
	for i := range w.anti {
		t.Anti = append(t.Anti, w.anti[i].Term)
	}
	// Where chance decides which domain a machine is in, nobody knows who is near.
	forTopology(&t, func(key string) {
		if chance := s.LeftToChance(s.KeyIndex(key)); chance != nil {
			named := feasible.Full(len(s.Options))
			named.AndNot(chance)
			narrow(named)
			t.Options = t.Options.Clone()
			t.Options.And(named)
		}
	})
	c.levels = append(c.levels, l)
	c.topo.Levels = append(c.topo.Levels, t)
}

// jointly are required affinity terms as the scheduler counts them: a pod counts for
// one of them only if all of them select it.
func jointly(terms []model.AffinityTerm) []model.AffinityTerm {
	out := slices.Clone(terms)
	for i := range out {
		for j := range terms {
			if j != i && !alike(&terms[i], &terms[j]) {
				both(&out[i], &terms[j])
			}
		}
	}
	return out
}

// alike reports whether two terms select the same pods.
func alike(x, y *model.AffinityTerm) bool {
	return reflect.DeepEqual(x.Selector, y.Selector) && x.AllNamespaces == y.AllNamespaces && slices.Equal(x.Namespaces, y.Namespaces)
}

// both narrows a term to the pods that another one selects, too.
func both(t, other *model.AffinityTerm) {
	switch {
	case t.AllNamespaces:
		t.AllNamespaces, t.Namespaces = other.AllNamespaces, other.Namespaces
	case !other.AllNamespaces:
		t.Namespaces = slices.DeleteFunc(slices.Clone(t.Namespaces), func(n string) bool { return !slices.Contains(other.Namespaces, n) })
	}
	if t.Selector == nil || other.Selector == nil {
		t.Selector = nil // nobody
		return
	}
	t.Selector = &model.Selector{Requirements: slices.Concat(t.Selector.Requirements, other.Selector.Requirements)}
}

// forTopology visits the keys of a level's terms.
func forTopology(t *topology.Level, visit func(key string)) {
	for i := range t.Spread {
		visit(t.Spread[i].TopologyKey)
	}
	for i := range t.Affinity {
		visit(t.Affinity[i].TopologyKey)
	}
	for i := range t.Anti {
		visit(t.Anti[i].TopologyKey)
	}
}
