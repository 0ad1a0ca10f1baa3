package oracle

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// spot is a place with the domains that topology sees.
type spot struct {
	name   string
	labels map[string]string
	taints []model.Taint
	host   string
}

// item is pods of one class that the plan puts on one spot.
type item struct {
	class, spot, left int
}

// topology looks for an order in which every pod finds its rules satisfied at
// the moment it enters its place. Pods with rules of their own go first; that
// is how rules can be kept at all, since pods without rules look at nobody.
func (c *checker) topology() {
	r := &replay{p: c.p, plan: c.plan, counts: map[count]int{}, counting: map[int][]*boundTerm{}, check: c}
	r.load(c)
	for {
		progress := false
		for i := range r.items {
			it := &r.items[i]
			for it.left > 0 && r.admits(it.class, it.spot) {
				r.enter(it.class, it.spot)
				it.left--
				progress = true
			}
		}
		if !progress {
			break
		}
	}
	for _, it := range r.items {
		if it.left > 0 {
			c.report("topology", "%d pods of class %d (%s) could never enter %s: %s", it.left, it.class, c.p.Classes[it.class].Owner, r.spots[it.spot].name, r.refusal)
			r.admits(it.class, it.spot)
		}
	}
}

type replay struct {
	p     *model.Problem
	plan  *model.Plan
	spots []spot
	items []item
	terms []*boundTerm
	// counts of pods by term and domain.
	counts   map[count]int
	counting map[int][]*boundTerm
	check    *checker
	refusal  string
	spread   [][]*boundTerm // per class
	near     [][]*boundTerm
	far      [][]*boundTerm
	// bans are anti-affinity terms of pods that run or enter: who carries them
	// is counted, and whom they select is refused.
	bans []*boundTerm
	rank []int
}

type count struct {
	term   int
	domain string
}

// boundTerm is one topology term and the pods that it counts.
type boundTerm struct {
	id         int
	key        string
	spread     *model.SpreadConstraint
	owner      *model.PodClass
	affinity   *model.AffinityTerm
	selectsPod func(namespace string, labels map[string]string) bool
	carriedBy  func(class int) bool
	total      int
	domains    []string
}

func (r *replay) bind(key string, selects func(string, map[string]string) bool) *boundTerm {
	t := &boundTerm{id: len(r.terms), key: key, selectsPod: selects}
	r.terms = append(r.terms, t)
	return t
}

func (r *replay) load(c *checker) {
	for n := range r.p.Nodes {
		node := &r.p.Nodes[n]
		r.spots = append(r.spots, spot{name: "node " + node.Name, labels: nodeLabels(node), taints: node.Taints, host: "node " + node.Name})
	}
	for i := range r.plan.NewNodes {
		n := &r.plan.NewNodes[i]
		pool := &r.p.Pools[n.Pool]
		name := "new node " + itoa(i)
		r.spots = append(r.spots, spot{name: name, labels: c.labelsOf(n.Pool, n.Offerings[0], n.Requirements), taints: pool.Taints, host: name})
	}
	r.bindTerms()
	for n := range r.p.Nodes {
		if r.p.Nodes[n].State == model.NodeLeaving {
			continue
		}
		for _, b := range r.p.Nodes[n].Bound {
			for range b.Count {
				r.running(b.Shape, n)
			}
		}
	}
	for i := range r.plan.Placements {
		for _, cp := range r.plan.Placements[i].Pods {
			r.items = append(r.items, item{cp.Class, r.plan.Placements[i].Node, len(cp.Pods)})
		}
	}
	for i := range r.plan.NewNodes {
		for _, cp := range r.plan.NewNodes[i].Pods {
			r.items = append(r.items, item{cp.Class, len(r.p.Nodes) + i, len(cp.Pods)})
		}
		c.pinned(r, i)
	}
	slices.SortStableFunc(r.items, func(a, b item) int { return r.rank[a.class] - r.rank[b.class] })
}

func (r *replay) bindTerms() {
	n := len(r.p.Classes)
	r.spread, r.near, r.far, r.rank = make([][]*boundTerm, n), make([][]*boundTerm, n), make([][]*boundTerm, n), make([]int, n)
	ban := func(a *model.AffinityTerm, carried func(int) bool) *boundTerm {
		t := r.bind(a.TopologyKey, nil)
		t.affinity, t.carriedBy = a, carried
		r.bans = append(r.bans, t)
		return t
	}
	for i := range r.p.Classes {
		class := &r.p.Classes[i]
		for j := range class.Spread {
			s := &class.Spread[j]
			if !s.Hard {
				continue
			}
			t := r.bind(s.TopologyKey, func(ns string, l map[string]string) bool { return ns == class.Namespace && s.Selector.Matches(l) })
			t.spread, t.owner = s, class
			t.domains = r.domainsFor(t)
			r.spread[i] = append(r.spread[i], t)
		}
		for j := range class.Affinity {
			t := r.bind(class.Affinity[j].TopologyKey, class.Affinity[j].Selects)
			t.owner = class
			r.near[i] = append(r.near[i], t)
		}
		for j := range class.AntiAffinity {
			t := r.bind(class.AntiAffinity[j].TopologyKey, class.AntiAffinity[j].Selects)
			t.owner = class
			r.far[i] = append(r.far[i], t)
			ban(&class.AntiAffinity[j], func(c int) bool { return c == i })
		}
		if len(r.spread[i])+len(r.near[i])+len(r.far[i]) == 0 {
			r.rank[i] = 1
		}
	}
	for s := range r.p.Shapes {
		for j := range r.p.Shapes[s].AntiAffinity {
			ban(&r.p.Shapes[s].AntiAffinity[j], func(c int) bool { return c == -1-s })
		}
	}
}

// domain is the spot's value for a topology key; a host is its own.
func (r *replay) domain(key string, at int) (string, bool) {
	if key == model.LabelHostname {
		return r.spots[at].host, true
	}
	v, ok := r.spots[at].labels[key]
	return v, ok
}

// eligible: the node inclusion policies let the spot count.
func (t *boundTerm) eligible(s *spot) bool {
	if t.spread == nil {
		return true
	}
	if t.spread.HonorNodeAffinity && (!t.owner.NodeRequirements.MatchLabels(s.labels) || !oneHolds(t.owner.NodeAlternatives, s.labels)) {
		return false
	}
	return !t.spread.HonorTaints || model.Untolerated(s.taints, t.owner.Tolerations) == nil
}

// domainsFor lists the domains over which a spread is even: those of eligible
// nodes, and those in which a machine could be bought for the pod.
func (r *replay) domainsFor(t *boundTerm) []string {
	if t.key == model.LabelHostname {
		return nil
	}
	var out []string
	add := func(labels map[string]string) {
		if v, ok := labels[t.key]; ok && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	for n := range r.p.Nodes {
		if r.p.Nodes[n].State != model.NodeLeaving && t.eligible(&r.spots[n]) {
			add(r.spots[n].labels)
		}
	}
	for i := range r.p.Pools {
		unknown := func(labels map[string]string) bool {
			v, ok := labels[t.key]
			return ok && !slices.Contains(out, v)
		}
		for _, m := range r.check.machinesFor(i, t.owner, unknown) {
			add(m.labels)
		}
	}
	return out
}

func (r *replay) running(shape, node int) {
	s := &r.p.Shapes[shape]
	r.record(-1-shape, s.Namespace, s.Labels, node)
}

func (r *replay) enter(class, at int) {
	c := &r.p.Classes[class]
	r.record(class, c.Namespace, c.Labels, at)
}

// counted: the term counts pods of the class, because it selects them or, for
// a ban, because they carry it.
func (r *replay) counted(t *boundTerm, class int, namespace string, labels map[string]string) bool {
	return t.carriedBy != nil && t.carriedBy(class) || t.selectsPod != nil && t.selectsPod(namespace, labels)
}

func (r *replay) record(class int, namespace string, labels map[string]string, at int) {
	counting, known := r.counting[class]
	if !known {
		for _, t := range r.terms {
			if r.counted(t, class, namespace, labels) {
				counting = append(counting, t)
			}
		}
		r.counting[class] = counting
	}
	for _, t := range counting {
		if t.eligible(&r.spots[at]) {
			t.total++
			if d, ok := r.domain(t.key, at); ok {
				r.counts[count{t.id, d}]++
			}
		}
	}
}

// admits: all topology rules of a pod of the class hold on the spot now.
func (r *replay) admits(class, at int) bool {
	c := &r.p.Classes[class]
	for _, t := range r.spread[class] {
		d, ok := r.domain(t.key, at)
		if !ok {
			r.refusal = "spread: no label " + t.key
			return false
		}
		self := 0
		if t.selectsPod(c.Namespace, c.Labels) {
			self = 1
		}
		if r.counts[count{t.id, d}]+self-r.minimum(t) > int(t.spread.MaxSkew) {
			r.refusal = "spread over " + t.key + " exceeded in " + d
			return false
		}
	}
	if !r.nearEnough(class, at) {
		r.refusal = "affinity not met"
		return false
	}
	for _, t := range r.far[class] {
		if d, ok := r.domain(t.key, at); ok && r.counts[count{t.id, d}] > 0 {
			r.refusal = "anti-affinity on " + t.key + " broken in " + d
			return false
		}
	}
	for _, t := range r.bans {
		if d, ok := r.domain(t.key, at); ok && r.counts[count{t.id, d}] > 0 && t.affinity.Selects(c.Namespace, c.Labels) {
			r.refusal = "another pod's anti-affinity on " + t.key + " broken in " + d
			return false
		}
	}
	return true
}

// minimum: a new host is always possible and empty; missing domains are empty.
func (r *replay) minimum(t *boundTerm) int {
	if t.key == model.LabelHostname || len(t.domains) < int(t.spread.MinDomains) || len(t.domains) == 0 {
		return 0
	}
	least := r.counts[count{t.id, t.domains[0]}]
	for _, d := range t.domains {
		least = min(least, r.counts[count{t.id, d}])
	}
	return least
}

// nearEnough: every affinity term finds a pod in the domain, or the pod is the
// first of a group that selects itself.
func (r *replay) nearEnough(class, at int) bool {
	c := &r.p.Classes[class]
	first, met := true, true
	for _, t := range r.near[class] {
		d, ok := r.domain(t.key, at)
		if !ok {
			return false
		}
		met = met && r.counts[count{t.id, d}] > 0
		first = first && t.total == 0 && t.selectsPod(c.Namespace, c.Labels)
	}
	return met || first
}
