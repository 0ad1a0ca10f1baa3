package verify

import (
	"slices"
	"strconv"

	"github.com/nodeautoprovision/nap/internal/model"
)

func itoa(i int) string { return strconv.Itoa(i) }

// bought is one way to buy a machine that a single pod could use by itself.
type bought struct {
	pool   int
	ref    model.OfferingRef
	narrow model.Requirements
	labels map[string]string
}

// machinesFor lists the ways to buy a machine from a pool that could take one
// pod of the class: by labels, taints, size, availability, and with one machine
// within every limit. Machines whose labels are not wanted are skipped.
func (c *checker) machinesFor(pool int, class *model.PodClass, wanted func(labels map[string]string) bool) []bought {
	var out []bought
	alone := *c.p
	alone.Classes = []model.PodClass{*class}
	alone.Classes[0].Pods = []model.PodRef{{}}
	alone.Policy.RelaxMinValues = true
	for _, m := range c.machinesOf(pool) {
		if !wanted(m.labels) {
			continue
		}
		one := &checker{p: &alone, cloud: c.cloud, plan: &model.Plan{Cost: m.ref.Price, NewNodes: []model.NewNode{{
			Pool: pool, Offerings: []model.OfferingRef{m.ref}, Requirements: m.narrow,
			Pods: []model.ClassPods{{Class: 0, Pods: []int{0}}},
		}}}}
		if one.places(); len(one.found) == 0 {
			out = append(out, m)
		}
	}
	return out
}

// machinesOf lists all ways to buy a machine from a pool.
func (c *checker) machinesOf(pool int) []bought {
	p, src := c.p, &c.p.Pools[pool]
	if src.Catalog < 0 || src.Catalog >= len(p.Catalogs) {
		return nil
	}
	if list, known := c.machines[pool]; known {
		return list
	}
	var list []bought
	for t := range p.Catalogs[src.Catalog].InstanceTypes {
		it := &p.Catalogs[src.Catalog].InstanceTypes[t]
		for _, narrow := range narrowings(p, pool, it) {
			for o := range it.Offerings {
				ref := model.OfferingRef{InstanceType: t, Offering: o, Price: it.Offerings[o].Price}
				list = append(list, bought{pool, ref, narrow, c.labelsOf(pool, ref, narrow)})
			}
		}
	}
	if c.machines == nil {
		c.machines = map[int][]bought{}
	}
	c.machines[pool] = list
	return list
}

// narrowings lists the ways to settle the labels that the pool or the type
// leaves open, among the values that some pod names.
func narrowings(p *model.Problem, pool int, it *model.InstanceType) []model.Requirements {
	out := []model.Requirements{nil}
	settle := func(key string, values []string) {
		var next []model.Requirements
		for _, rs := range out {
			next = append(next, rs)
			for _, v := range values {
				next = append(next, append(rs[:len(rs):len(rs)], model.Requirement{Key: key, Operator: model.In, Values: []string{v}}))
			}
		}
		out = next
	}
	seen := map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelInstanceType: true}
	for _, r := range p.Pools[pool].Requirements {
		if _, fixed := it.Labels[r.Key]; fixed || seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		var values []string
		if r.Operator == model.In && len(r.Values) > 1 {
			values = r.Values
		} else if r.Operator != model.In {
			values = namedValues(p, r)
		}
		settle(r.Key, values)
	}
	for key, values := range it.Choices {
		settle(key, values)
	}
	return out
}

// namedValues are the values of a label that some pod asks for and r allows.
func namedValues(p *model.Problem, r model.Requirement) []string {
	var out []string
	seen := map[string]bool{}
	visit := func(rs model.Requirements) {
		for _, o := range rs {
			for _, v := range o.Values {
				if o.Key == r.Key && !seen[v] && r.Matches(v, true) {
					seen[v] = true
					out = append(out, v)
				}
			}
		}
	}
	for i := range p.Classes {
		visit(p.Classes[i].NodeRequirements)
		for _, rs := range p.Classes[i].NodeAlternatives {
			visit(rs)
		}
	}
	return out
}

// pinned: where a spread looks at a pod, all offerings of its machine lie in the same
// domain; where another term looks at or counts it, all lie in one or none does. The
// domains of those that may lie in several are noted.
func (c *checker) pinned(r *replay, i int) {
	n := &c.plan.NewNodes[i]
	open, mixed := c.openDomains(r, n)
	spot := &r.spots[len(c.p.Nodes)+i]
	spot.open = map[string][]string{}
	for key, domains := range open { // a set: order does not matter
		if len(domains) > 1 && !mixed[key] {
			spot.open[key] = domains
		}
	}
	for _, cp := range n.Pods {
		pod := &c.p.Classes[cp.Class]
		for _, t := range r.terms {
			if len(open[t.key]) < 2 || !r.cares(t, cp.Class) || !mixed[t.key] && t.spread == nil {
				continue
			}
			if r.counted(t, cp.Class, pod.Namespace, pod.Labels) || t.owner == pod ||
				t.affinity != nil && t.affinity.Selects(pod.Namespace, pod.Labels) {
				c.report("pinned domains", "new node %d holds pods of class %d, whose rules depend on %s, and may be bought in %v",
					i, cp.Class, t.key, open[t.key])
				return
			}
		}
	}
}

// openDomains are, by topology key of the terms, the domains in which a new node may be
// bought, and the keys of which some offering leaves the domain to chance.
func (c *checker) openDomains(r *replay, n *model.NewNode) (open map[string][]string, mixed map[string]bool) {
	open, mixed = map[string][]string{}, map[string]bool{}
	for _, t := range r.terms {
		if open[t.key] != nil || t.key == model.LabelHostname {
			continue
		}
		for _, ref := range n.Offerings {
			d, ok := c.labelsOf(n.Pool, ref, n.Requirements)[t.key]
			if !slices.Contains(open[t.key], d) {
				open[t.key] = append(open[t.key], d)
			}
			mixed[t.key] = mixed[t.key] || !ok || d == someValue
		}
	}
	return open, mixed
}

// cares: pods which a spread merely counts may come last, when no rule asks any more.
func (r *replay) cares(t *boundTerm, class int) bool {
	return t.spread == nil || t.owner == &r.p.Classes[class]
}
