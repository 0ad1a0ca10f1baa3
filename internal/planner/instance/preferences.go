package instance

import (
	"reflect"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// preferences are those that are still honoured while levels are derived, the
// heaviest of each kind first.
type preferences struct {
	affinity, anti []model.AffinityPreference
	nodes          []model.NodePreference
	spread         []model.SpreadConstraint
	softTaints     bool
	// share are caps of what one node may hold; they hold whatever the policy on
	// preferences.
	share []model.SpreadConstraint
	// zones are the options in zones, for classes which are spread over zones and could
	// use machines without one, too; nil otherwise. The scheduler would count those as one
	// more zone, which is not what the pods ask for; it holds whatever the policy on
	// preferences. wishedZones are the same where pods only prefer to be spread over zones:
	// they hold as long as that does.
	zones, wishedZones bitset.Set
}

// addLevels derives the levels: preferences are given up one at a time, pod
// affinity first, then anti-affinity, node affinity, ScheduleAnyway,
// PreferNoSchedule taints, caps of what one node may hold, and last that zones to spread
// over are zones. Of several terms of one kind the lightest goes
// first; of node affinity terms only the heaviest is honoured at a time, and
// the next one takes its place. It appends the topology terms of each level. The pod
// is one of the class.
func (k *compiler) addLevels(c *Class, pod *feasible.Pod, terms []topology.Level) []topology.Level {
	s := k.space
	w := preferences{softTaints: k.soft, share: c.Spec.Shares()}
	if !s.Problem.Policy.IgnorePreferences {
		for _, pref := range c.Spec.Preferences {
			if pref.Anti {
				w.anti = append(w.anti, pref)
			} else {
				w.affinity = append(w.affinity, pref)
			}
		}
		heavierFirst := func(a, b model.AffinityPreference) int { return int(b.Weight) - int(a.Weight) }
		slices.SortStableFunc(w.affinity, heavierFirst)
		slices.SortStableFunc(w.anti, heavierFirst)
		w.nodes = slices.Clone(c.Spec.NodePreferences)
		slices.SortStableFunc(w.nodes, func(a, b model.NodePreference) int { return int(b.Weight) - int(a.Weight) })
		for i := range c.Spec.Spread {
			if !c.Spec.Spread[i].Hard && !c.Spec.Spread[i].Share {
				w.spread = append(w.spread, c.Spec.Spread[i])
			}
		}
	}
	base := k.hardLevel(pod)
	base.Options = k.options(pod, base.Static)
	c.Buyable = base.Options.Any()
	switch ofZone := func(t model.AffinityTerm) bool { return t.TopologyKey == model.LabelZone }; {
	case slices.ContainsFunc(c.Spec.Spread, spreadsZones), slices.ContainsFunc(c.Spec.AntiAffinity, ofZone):
		w.zones = k.inZones(base.Options)
	case w.wishesZones():
		w.wishedZones = k.inZones(base.Options)
	}
	terms = append(terms, k.addLevel(c, base, &w, ""))
	for {
		given, ok := w.giveUp()
		if !ok {
			return terms
		}
		terms = append(terms, k.addLevel(c, base, &w, given))
	}
}

// spreadsZones reports whether the scheduler enforces that a constraint spreads over zones.
func spreadsZones(c model.SpreadConstraint) bool { return c.Hard && c.TopologyKey == model.LabelZone }

// wishesZones reports whether a preference is left that spreads pods over zones.
func (w *preferences) wishesZones() bool {
	return slices.ContainsFunc(w.spread, func(c model.SpreadConstraint) bool { return c.TopologyKey == model.LabelZone }) ||
		slices.ContainsFunc(w.anti, func(p model.AffinityPreference) bool { return p.Term.TopologyKey == model.LabelZone })
}

// giveUp drops the next preference and names it, or reports that none is left.
func (w *preferences) giveUp() (string, bool) {
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
	case len(w.share) > 0:
		w.share = nil
		return model.ShareGivenUp, true
	case w.zones != nil:
		w.zones = nil
		return "spread over machines in zones alone", true
	}
	return "", false
}

// addLevel appends the level at which the class honours the given preferences. The
// base is the level without any. It returns the topology terms of the level.
func (k *compiler) addLevel(c *Class, base Level, w *preferences, given string) topology.Level {
	s := k.space
	l := Level{Options: base.Options, Static: base.Static, Nodes: base.Nodes, GivenUp: given}
	only := func(set bitset.Set) {
		static := k.sets.Set(l.Static).Clone()
		static.And(set)
		l.Static = k.sets.Intern(static)
		l.Options = l.Options.Clone()
		l.Options.And(set)
	}
	if len(w.nodes) > 0 {
		if set := s.Labels.Matching(w.nodes[0].Requirements); set != nil {
			only(set)
		}
		if set := s.Labels.NodesMatching(w.nodes[0].Requirements); set != nil {
			l.Nodes = l.Nodes.Clone()
			l.Nodes.And(set)
		}
	}
	if w.softTaints {
		only(s.Tolerating(c.Spec.Tolerations, true))
		l.Nodes = l.Nodes.Clone()
		l.Nodes.And(s.NodesTolerating(c.Spec.Tolerations, true))
	}
	t := topology.Level{Options: base.Options, Affinity: jointly(c.Spec.Affinity), AntiAffinity: slices.Clone(c.Spec.AntiAffinity)}
	for i := range c.Spec.Spread {
		if c.Spec.Spread[i].Hard {
			t.Spread = append(t.Spread, c.Spec.Spread[i])
		}
	}
	t.Spread = slices.Concat(t.Spread, w.spread, w.share)
	for i := range w.affinity {
		t.Affinity = append(t.Affinity, w.affinity[i].Term)
	}
	for i := range w.anti {
		t.AntiAffinity = append(t.AntiAffinity, w.anti[i].Term)
	}
	// Where chance decides which domain a node is in, topology cannot count on it.
	zones := w.zones
	if w.wishesZones() && zones == nil {
		zones = w.wishedZones
	}
	if zones != nil {
		only(zones)
		t.Options = t.Options.Clone()
		t.Options.And(zones)
	}
	forTopology(&t, func(key string) {
		if chance := s.Labels.LeftToChance(s.Labels.KeyIndex(key)); chance != nil {
			named := bitset.Full(len(s.Options))
			named.AndNot(chance)
			only(named)
			t.Options = t.Options.Clone()
			t.Options.And(named)
		}
	})
	c.Levels = append(c.Levels, l)
	return t
}

// inZones are the options whose machines are in a zone, or in none where their pool names
// that as a zone; nil where there are not both kinds among some options.
func (k *compiler) inZones(options bitset.Set) bitset.Set {
	if k.zoned == nil {
		k.zoned = bitset.Full(len(k.space.Options))
		for o := range k.space.Options {
			pool := &k.space.Problem.Pools[k.space.Options[o].Pool]
			if _, offering := k.space.Offering(o); offering.Zone == model.NoZone && !pool.NamesNoZone() {
				k.zoned.Remove(o)
			}
		}
	}
	left := options.Clone()
	left.And(k.zoned)
	if !left.Any() || slices.Equal(left, options) {
		return nil
	}
	return k.zoned
}

// jointly are required affinity terms as the scheduler counts them: a pod counts for
// one of them only if all of them select it. The caller owns the list.
func jointly(terms []model.AffinityTerm) []model.AffinityTerm {
	out := slices.Clone(terms)
	for i := range out {
		for j := range terms {
			if j != i && !alike(&terms[i], &terms[j]) {
				narrow(&out[i], &terms[j])
			}
		}
	}
	return out
}

// alike reports whether two terms select the same pods.
func alike(x, y *model.AffinityTerm) bool {
	return reflect.DeepEqual(x.Selector, y.Selector) && x.AllNamespaces == y.AllNamespaces && slices.Equal(x.Namespaces, y.Namespaces)
}

// narrow leaves of the pods that a term selects those that another one selects, too.
func narrow(t, other *model.AffinityTerm) {
	switch {
	case t.AllNamespaces:
		t.AllNamespaces, t.Namespaces = other.AllNamespaces, other.Namespaces
	case !other.AllNamespaces:
		t.Namespaces = slices.DeleteFunc(slices.Clone(t.Namespaces), func(n string) bool { return !slices.Contains(other.Namespaces, n) })
	}
	if t.Selector == nil || other.Selector == nil {
		t.Selector = nil // no pod
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
	for i := range t.AntiAffinity {
		visit(t.AntiAffinity[i].TopologyKey)
	}
}
