package verify

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// count names a counter: a term by its id, and a value of its topology key.
type count struct {
	term   int
	domain string
}

// boundTerm is one topology term and the pods that it counts. What the term does not need
// is nil.
type boundTerm struct {
	// id is its index in replay.terms, key its topology key.
	id  int
	key string
	// spread is the constraint of a spread term, and owner the class whose term it is, with
	// its index.
	spread *model.SpreadConstraint
	owner  *model.PodClass
	class  int
	// affinity is the anti-affinity term of a ban.
	affinity *model.AffinityTerm
	// selectsPod reports whether the term counts a pod; nil for bans, which count the
	// pods of the classes and shapes that carriedBy names (shape s as -1-s).
	selectsPod func(namespace string, labels map[string]string) bool
	carriedBy  func(class int) bool
	// attracts says that pods have to be near those that the term counts.
	attracts bool
	// total is how many pods it counts in all domains, and starting how many of them are on
	// machines that have yet to start.
	total, starting int
	// domains are those over which a spread is even (domainsFor).
	domains []string
}

// bind adds a term that counts the pods which selects picks.
func (r *replay) bind(key string, selects func(string, map[string]string) bool) *boundTerm {
	t := &boundTerm{id: len(r.terms), key: key, selectsPod: selects}
	r.terms = append(r.terms, t)
	return t
}

// bindTerms binds the required terms of all classes, and the anti-affinity of pods that
// run: a pod that runs refuses those which enter, but nothing refuses it.
func (r *replay) bindTerms() {
	n := len(r.p.Classes)
	r.spread, r.near, r.far, r.rank = make([][]*boundTerm, n), make([][]*boundTerm, n), make([][]*boundTerm, n), make([]int, n)
	ban := func(a *model.AffinityTerm, carried func(int) bool) {
		t := r.bind(a.TopologyKey, nil)
		t.affinity, t.carriedBy = a, carried
		r.bans = append(r.bans, t)
	}
	for i := range r.p.Classes {
		class := &r.p.Classes[i]
		for j := range class.Spread {
			s := &class.Spread[j]
			if !s.Hard {
				continue
			}
			t := r.bind(s.TopologyKey, func(ns string, l map[string]string) bool { return ns == class.Namespace && s.Selector.Matches(l) })
			t.spread, t.owner, t.class = s, class, i
			t.domains = r.domainsFor(t)
			r.spread[i] = append(r.spread[i], t)
		}
		for j := range class.Affinity {
			t := r.bind(class.Affinity[j].TopologyKey, func(namespace string, labels map[string]string) bool {
				for k := range class.Affinity { // a pod counts only if all terms select it
					if !class.Affinity[k].Selects(namespace, labels) {
						return false
					}
				}
				return true
			})
			t.owner, t.attracts = class, true
			r.near[i] = append(r.near[i], t)
		}
		for j := range class.AntiAffinity {
			t := r.bind(class.AntiAffinity[j].TopologyKey, class.AntiAffinity[j].Selects)
			t.owner = class
			r.far[i] = append(r.far[i], t)
			ban(&class.AntiAffinity[j], func(c int) bool { return c == i })
		}
		own := slices.Concat(r.spread[i], r.near[i], r.far[i])
		perHost := func(t *boundTerm) bool { return t.key == model.LabelHostname }
		switch {
		case slices.ContainsFunc(own, perHost):
			r.rank[i] = 0
		case len(own) > 0:
			r.rank[i] = 1
		default:
			r.rank[i] = 2
		}
	}
	for s := range r.p.Shapes {
		for j := range r.p.Shapes[s].AntiAffinity {
			ban(&r.p.Shapes[s].AntiAffinity[j], func(c int) bool { return c == -1-s })
		}
	}
}

// eligible: the node inclusion policies let the spot count, and it has a domain
// for each of the pod's spreads.
func (t *boundTerm) eligible(s *spot) bool {
	if t.spread == nil {
		return true
	}
	for i := range t.owner.Spread {
		if other := &t.owner.Spread[i]; other.Hard && other.TopologyKey != model.LabelHostname {
			if _, ok := s.labels[other.TopologyKey]; !ok {
				return false
			}
		}
	}
	if t.spread.HonorNodeAffinity && (!t.owner.NodeRequirements.MatchLabels(s.labels) || !oneHolds(t.owner.NodeAlternatives, s.labels)) {
		return false
	}
	return !t.spread.HonorTaints || model.Untolerated(s.taints, t.owner.Tolerations) == nil
}

// domainsFor lists the domains over which a spread is even: those of eligible
// nodes, those of eligible machines that the plan buys for whomever, and those in
// which a machine could be bought for the pod. Machines without a zone that could be
// bought beside some in zones are none to spread over, unless their pool names them. Of
// hosts they are the nodes that the scheduler sees, also those that are leaving.
func (r *replay) domainsFor(t *boundTerm) []string {
	var out []string
	if t.key == model.LabelHostname {
		for n := range r.p.Nodes {
			if r.exists(n) && t.eligible(&r.spots[n]) && !t.spread.Share {
				out = append(out, r.spots[n].host)
			}
		}
		return out
	}
	for n := range r.spots {
		leaving := n < len(r.p.Nodes) && r.p.Nodes[n].State == model.NodeLeaving
		if !leaving && t.eligible(&r.spots[n]) {
			out = t.addDomain(out, r.spots[n].labels)
		}
	}
	return r.addDomainsOnSale(t, out)
}

// addDomain adds the term's domain of a node to a list, unless it is there.
func (t *boundTerm) addDomain(list []string, labels map[string]string) []string {
	if v, ok := labels[t.key]; ok && v != someValue && !slices.Contains(list, v) {
		return append(list, v)
	}
	return list
}

// addDomainsOnSale adds to a list the domains in which a machine could be bought for the
// term's pod.
func (r *replay) addDomainsOnSale(t *boundTerm, out []string) []string {
	there, named := len(out), false
	for i := range r.p.Pools {
		names := !named && r.p.Pools[i].NamesNoZone()
		unknown := func(labels map[string]string) bool {
			v, ok := labels[t.key]
			return ok && (!slices.Contains(out, v) || v == model.NoZone && names)
		}
		for _, m := range r.check.machinesFor(i, t.owner, unknown) {
			if t.eligible(&spot{labels: m.labels, taints: r.p.Pools[i].Taints}) {
				out = t.addDomain(out, m.labels)
				named = named || names && m.labels[t.key] == model.NoZone
			}
		}
	}
	if t.key == model.LabelZone && len(out) > 1 && !named {
		bought := slices.DeleteFunc(out[there:], func(zone string) bool { return zone == model.NoZone })
		out = out[:there+len(bought)]
	}
	return out
}

// counted: the term counts pods of the class, because it selects them or, for
// a ban, because they carry it.
func (r *replay) counted(t *boundTerm, class int, namespace string, labels map[string]string) bool {
	return t.carriedBy != nil && t.carriedBy(class) || t.selectsPod != nil && t.selectsPod(namespace, labels)
}

// counters lists the terms that count pods of a class, or, below zero, of a
// shape of running pods.
func (r *replay) counters(class int) []*boundTerm {
	if list, known := r.counting[class]; known {
		return list
	}
	var shape *model.PodShape
	if class < 0 {
		shape = &r.p.Shapes[-1-class]
	} else {
		shape = &r.p.Classes[class].PodShape
	}
	var list []*boundTerm
	for _, t := range r.terms {
		if r.counted(t, class, shape.Namespace, shape.Labels) {
			list = append(list, t)
		}
	}
	r.counting[class] = list
	return list
}
