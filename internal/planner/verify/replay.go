package verify

import (
	"github.com/nodeautoprovision/nap/internal/model"
)

// spot is a place with the domains that topology sees: an existing node, or a new one of
// the plan.
type spot struct {
	// name is what violations call it.
	name string
	// labels are all that a node there has or will have; someValue stands for a value
	// that is not known.
	labels map[string]string
	// taints are those that the scheduler will see, startup taints left out.
	taints []model.Taint
	// host is its domain of kubernetes.io/hostname, different for each spot.
	host string
	// open are, by key, the domains of a machine that may be bought in several.
	open map[string][]string
}

// item is pods of one class that the plan puts on one spot, both by index: left of all of
// them have yet to enter.
type item struct {
	class, spot, left, all int
}

// replay is a plan while its pods enter one by one.
//
// Invariant: counts and the totals of terms are those of the pods that run and of those
// that have entered, which are all - left of each item.
type replay struct {
	p    *model.Problem
	plan *model.Plan
	// spots are the existing nodes, by their index in the problem, and then the new ones
	// of the plan, in its order.
	spots []spot
	items []item
	// terms are all topology terms, by their id.
	terms []*boundTerm
	// counts of pods by term and domain.
	counts map[count]int
	// counting remembers, by class or, below zero, shape, the terms that count its pods.
	counting map[int][]*boundTerm
	check    *checker
	// refusal says why admits refused the last pod.
	refusal string
	// spread, near and far are, by class, its own terms: topology spread that is
	// required, affinity and anti-affinity. Preferences bind no pod and are left out.
	spread, near, far [][]*boundTerm
	// bans are anti-affinity terms of pods that run or enter: pods which carry them
	// are counted, and pods which they select are refused.
	bans []*boundTerm
	// banned remembers, by class, the bans that select its pods.
	banned map[int][]*boundTerm
	// rank is, by class, 0 if it has rules on hosts, 1 if it has others, else 2.
	rank []int
}

func newReplay(c *checker) *replay {
	r := &replay{p: c.p, plan: c.plan, check: c, counts: map[count]int{}, counting: map[int][]*boundTerm{}, banned: map[int][]*boundTerm{}}
	r.load(c)
	return r
}

// load lists the spots and the pods of the plan, binds all terms, and lets the pods that
// run already be counted. It needs the spots of all nodes before the terms, since a
// spread's domains come from them.
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
			r.items = append(r.items, item{cp.Class, r.plan.Placements[i].Node, len(cp.Pods), len(cp.Pods)})
		}
	}
	for i := range r.plan.NewNodes {
		for _, cp := range r.plan.NewNodes[i].Pods {
			r.items = append(r.items, item{cp.Class, len(r.p.Nodes) + i, len(cp.Pods), len(cp.Pods)})
		}
		c.pinned(r, i)
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

// possible are the domains that the spot may turn out to be in, if any.
func (r *replay) possible(key string, at int) []string {
	if several := r.spots[at].open[key]; several != nil {
		return several
	}
	if d, ok := r.domain(key, at); ok {
		return []string{d}
	}
	return nil
}

// aboard is, in place of a domain, the spot itself.
func (r *replay) aboard(at int) string { return "aboard " + r.spots[at].host }

func (r *replay) running(shape, node int) { r.record(-1-shape, node, 1) }

func (r *replay) enter(class, at int) { r.record(class, at, 1) }

// record counts pods of a class. Where it is not known in which of several domains they
// are, they repel in all of them and attract to their machine alone. A spread that
// merely counts them does not ask any more; see cares.
func (r *replay) record(class, at, n int) {
	for _, t := range r.counters(class) {
		domains := r.possible(t.key, at)
		if len(domains) == 0 || !t.eligible(&r.spots[at]) {
			continue
		}
		t.total += n
		if !r.exists(at) {
			t.starting += n
		}
		switch {
		case t.spread != nil:
			domains = domains[:1]
		case t.attracts && len(domains) > 1:
			domains = []string{r.aboard(at)}
		}
		for _, d := range domains {
			r.counts[count{t.id, d}] += n
		}
	}
}
