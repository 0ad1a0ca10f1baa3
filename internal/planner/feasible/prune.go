package feasible

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/noderules"
)

const (
	// manyOptions is from how many options on NodePools are left out which a plan does not
	// need. Below it all of them are compiled: they cost little, and say more exactly what
	// keeps pods from them.
	manyOptions = 1 << 14
	// mostOptions is how many options all NodePools together may have (see [Space.Whole]).
	mostOptions = 500_000
	// explainingPools is how many NodePools are kept for classes which none suits, so that
	// it can be said why, where all of them are too many.
	explainingPools = 8
)

// offerings is how many offerings the pools of the order have, those included that their
// requirements leave out.
func offerings(p *model.Problem, order []int, catalogs []*catalog) int {
	n := 0
	for _, i := range order {
		n += catalogs[p.Pools[i].Catalog].count
	}
	return n
}

// prune returns the NodePools that a plan needs, in their order: those whose taints and
// labels admit a class, and so many of the others, to explain, if a class is admitted by
// none. Of NodePools that offer the same to all pods the first stands for all, if its limits
// cannot keep pods from it; of those with limits that matter, and as much left of them, there are as
// many as a plan buys machines at most. What is left out is noted in unused and alike.
//
// What is left out changes no cost: with a pool's alternative every machine can be bought
// from the one that stands for it. Ties between pools break by weight and name in any case.
func (k *compiler) prune(order []int, catalogs []*catalog, spare int) []int {
	p := k.problem
	rules := classRules(p)
	admitted, hopeless, cloud := make([]bitset.Set, len(p.Pools)), bitset.Full(len(rules)), noderules.NewCloudLabels(p)
	for _, i := range order {
		admitted[i] = bitset.New(len(rules))
		for r := range rules {
			if rules[r].Admits(&p.Pools[i], cloud) {
				admitted[i].Add(r)
				hopeless.Remove(r)
			}
		}
	}
	if !hopeless.Any() {
		spare = 0
	}
	named, most := newNamedPools(p), newMostPurchases(p, k.dims.Axes)
	k.unused, k.alike = nil, map[int][]int{}
	first := map[string]int{}     // the first pool with an offer
	limited := map[string][]int{} // those kept with an offer and as much left of their limits
	var out, unnamed []int
	for _, i := range order {
		pool := &p.Pools[i]
		switch used := admitted[i].Any(); {
		case !used && spare <= 0:
			k.unused = append(k.unused, i)
			continue
		case !used:
			spare--
		case !named.each && !named.names[pool.Name] && !most.mayReachLimit(pool):
			offer := offerOf(k.nameless(pool, catalogs[pool.Catalog]))
			if other, known := first[offer]; known {
				k.alike[other] = append(k.alike[other], i)
				continue
			}
			first[offer] = i
			unnamed = append(unnamed, i)
		case !named.each && !named.names[pool.Name]:
			offer := offerOf(k.leftOf(pool, catalogs[pool.Catalog]))
			kept := limited[offer]
			if int64(len(kept)) == most.machines {
				k.alike[kept[0]] = append(k.alike[kept[0]], i)
				continue
			}
			limited[offer] = append(kept, i)
		}
		out = append(out, i)
	}
	return k.dropNarrower(out, unnamed, catalogs, admitted)
}

// dropNarrower drops NodePools that offer what another one offers to more classes: their taints
// keep some from them. Candidates may stand for others and be stood for.
func (k *compiler) dropNarrower(order, candidates []int, catalogs []*catalog, admitted []bitset.Set) []int {
	p := k.problem
	widest := map[string]int{} // the pool with an offer that admits the most
	offers := make(map[int]string, len(candidates))
	for _, i := range candidates {
		pool := *k.nameless(&p.Pools[i], catalogs[p.Pools[i].Catalog])
		pool.Daemons = slices.DeleteFunc(slices.Clone(pool.Daemons), func(d model.Daemon) bool {
			return model.Untolerated(pool.Taints, d.Tolerations) != nil
		})
		pool.Taints = nil
		offers[i] = string(model.AppendKey(nil, &pool))
		if prefersOthers(&p.Pools[i]) {
			continue
		}
		if best, known := widest[offers[i]]; !known || admitted[i].Count() > admitted[best].Count() {
			widest[offers[i]] = i
		}
	}
	narrower := func(i int) bool {
		offer, candidate := offers[i]
		best, known := widest[offer]
		if !candidate || !known || best == i {
			return false
		}
		beyond := admitted[i].Clone()
		beyond.AndNot(admitted[best])
		return !beyond.Any()
	}
	for _, i := range order {
		if narrower(i) {
			k.unused = append(append(k.unused, i), k.alike[i]...)
			delete(k.alike, i)
		}
	}
	slices.Sort(k.unused)
	return slices.DeleteFunc(order, narrower)
}

// prefersOthers reports whether pods that tolerate a pool's taints had rather not use it.
func prefersOthers(pool *model.Pool) bool {
	return slices.ContainsFunc(pool.Taints, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}

// nameless is a pool without what is its own alone: its name, limits, and labels that
// neither pods nor the cloud know of. Several requirements on one such label stay, since they
// may exclude each other.
func (k *compiler) nameless(pool *model.Pool, cat *catalog) *model.Pool {
	out := *pool
	out.Name, out.Labels, out.Usage, out.Nodes, out.Cost = "", nil, nil, 0, 0
	out.Limits, out.NodeLimit, out.CostLimit = nil, -1, nil
	times := map[string]int{}
	for i := range pool.Requirements {
		times[pool.Requirements[i].Key]++
	}
	own := func(r model.Requirement) bool {
		if times[r.Key] > 1 {
			return false
		}
		return r.Key == model.LabelNodePool ||
			r.MinValues == 0 && k.labels.asked[r.Key] == nil && !cat.sets[k.labels.labels.KeyIndex(r.Key)]
	}
	out.Requirements = slices.DeleteFunc(slices.Clone(pool.Requirements), own)
	return &out
}

// offerOf is a text of what a nameless pool offers, whatever its weight: lighter pools are not come to
// before heavier ones that offer the same have no room for a machine.
func offerOf(pool *model.Pool) string {
	pool.Weight = 0
	return string(model.AppendKey(nil, pool))
}

// leftOf is a nameless pool with what is left of its limits, in the order of the axes, in the place of
// these.
func (k *compiler) leftOf(pool *model.Pool, cat *catalog) *model.Pool {
	out := k.nameless(pool, cat)
	for _, l := range pool.Limits {
		out.Limits = append(out.Limits, model.Limit{Axis: l.Axis, Value: l.Value - pool.Usage.Get(l.Axis)})
	}
	slices.SortFunc(out.Limits, func(a, b model.Limit) int { return cmp.Or(a.Axis-b.Axis, cmp.Compare(a.Value, b.Value)) })
	if pool.NodeLimit >= 0 {
		out.NodeLimit, out.Nodes = pool.NodeLimit-pool.Nodes, -1 // less than none may be left
	}
	if pool.CostLimit != nil {
		left := *pool.CostLimit - pool.Cost
		out.CostLimit = &left
	}
	return out
}

// mostPurchases bounds what a plan buys: a machine for each pod, each the largest and the
// dearest.
type mostPurchases struct {
	machines int64
	// largest are capacities, by axis.
	largest model.Resources
	dearest model.Money
}

func newMostPurchases(p *model.Problem, axes int) *mostPurchases {
	m := &mostPurchases{machines: max(1, int64(p.PodCount())), largest: make(model.Resources, axes)}
	for c := range p.Catalogs {
		for t := range p.Catalogs[c].InstanceTypes {
			it := &p.Catalogs[c].InstanceTypes[t]
			for axis := range m.largest {
				m.largest[axis] = max(m.largest[axis], it.Capacity.Get(axis))
			}
			for o := range it.Offerings {
				m.dearest = max(m.dearest, it.Offerings[o].Price)
			}
		}
	}
	return m
}

// mayReachLimit reports whether a pool may come to one of its limits.
func (m *mostPurchases) mayReachLimit(pool *model.Pool) bool {
	beyond := func(left, each int64) bool { return each > 0 && left/m.machines < each }
	for _, l := range pool.Limits {
		if beyond(l.Value-pool.Usage.Get(l.Axis), m.largest.Get(l.Axis)) {
			return true
		}
	}
	return pool.NodeLimit >= 0 && beyond(int64(pool.NodeLimit-pool.Nodes), 1) ||
		pool.CostLimit != nil && beyond(int64(*pool.CostLimit-pool.Cost), int64(m.dearest))
}

// namedPools are the NodePools that pods and DaemonSets tell from others by name.
type namedPools struct {
	// each says that pods tell all of them apart, names are those that some tell apart.
	each  bool
	names map[string]bool
}

func newNamedPools(p *model.Problem) *namedPools {
	n := &namedPools{names: map[string]bool{}}
	for i := range p.Classes {
		c := &p.Classes[i]
		n.note(c.NodeRequirements)
		for _, rs := range c.NodeAlternatives {
			n.note(rs)
		}
		for i := range c.NodePreferences {
			n.note(c.NodePreferences[i].Requirements)
		}
		n.each = n.each || spansPools(c)
	}
	for i := range p.Pools {
		for d := range p.Pools[i].Daemons {
			for _, rs := range p.Pools[i].Daemons[d].Requirements {
				n.note(rs)
			}
		}
	}
	for i := range p.Shapes {
		n.each = n.each || slices.ContainsFunc(p.Shapes[i].AntiAffinity, overPools)
	}
	return n
}

// overPools reports whether a term counts pods by NodePool.
func overPools(t model.AffinityTerm) bool { return t.TopologyKey == model.LabelNodePool }

// note notes the NodePools that requirements name.
func (n *namedPools) note(rs model.Requirements) {
	for i := range rs {
		switch r := &rs[i]; {
		case r.Key != model.LabelNodePool:
		case r.Operator == model.In || r.Operator == model.NotIn:
			for _, name := range r.Values {
				n.names[name] = true
			}
		default:
			n.each = true
		}
	}
}

// spansPools reports whether pods are spread over NodePools, or kept together or apart in them.
func spansPools(c *model.PodClass) bool {
	return slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return s.TopologyKey == model.LabelNodePool }) ||
		slices.ContainsFunc(c.Affinity, overPools) || slices.ContainsFunc(c.AntiAffinity, overPools) ||
		slices.ContainsFunc(c.Preferences, func(t model.AffinityPreference) bool { return overPools(t.Term) })
}

// classRules are the different rules of all classes, in the order of their first classes.
func classRules(p *model.Problem) []noderules.Rules {
	var out []noderules.Rules
	seen := map[string]bool{}
	for i := range p.Classes {
		rules := noderules.Of(&p.Classes[i])
		if key := rules.Key(); !seen[key] {
			seen[key] = true
			out = append(out, rules)
		}
	}
	return out
}
