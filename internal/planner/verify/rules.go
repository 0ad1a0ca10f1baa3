package verify

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// staysEven: every spread that counts the pod counts least where it goes, but for hosts
// that do not exist yet.
func (r *replay) staysEven(class, at int) bool {
	for _, t := range r.counters(class) {
		if t.spread == nil || t.key == model.LabelHostname && !r.exists(at) {
			continue
		}
		if d, ok := r.domain(t.key, at); ok && r.counts[count{t.id, d}] > r.minimum(t, at) {
			return false
		}
	}
	return true
}

// taken: pods that the term counts may be where the spot turns out to be.
func (r *replay) taken(t *boundTerm, at int) bool {
	return slices.ContainsFunc(r.possible(t.key, at), func(d string) bool { return r.counts[count{t.id, d}] > 0 })
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
		if r.counts[count{t.id, d}]+self-r.minimum(t, at) > int(t.spread.MaxSkew) {
			r.refusal = "spread over " + t.key + " exceeded in " + d
			return false
		}
	}
	if !r.nearEnough(class, at) {
		r.refusal = "affinity not met"
		return false
	}
	for _, t := range r.far[class] {
		if r.taken(t, at) {
			r.refusal = "anti-affinity on " + t.key + " broken"
			return false
		}
	}
	for _, t := range r.bansOn(class) {
		if r.taken(t, at) {
			r.refusal = "another pod's anti-affinity on " + t.key + " broken"
			return false
		}
	}
	return true
}

// bansOn lists the anti-affinity terms that select pods of the class.
func (r *replay) bansOn(class int) []*boundTerm {
	if list, known := r.banned[class]; known {
		return list
	}
	var list []*boundTerm
	c := &r.p.Classes[class]
	for _, t := range r.bans {
		if t.affinity.Selects(c.Namespace, c.Labels) {
			list = append(list, t)
		}
	}
	r.banned[class] = list
	return list
}

// minimum: for a host that does not exist yet, or a pod that may have to wait for one, others
// that are empty may come before it; missing domains are empty.
func (r *replay) minimum(t *boundTerm, at int) int {
	if t.key == model.LabelHostname && (!r.exists(at) || mayWait(r, t.class)) ||
		len(t.domains) < int(t.spread.MinDomains) || len(t.domains) == 0 {
		return 0
	}
	least := r.counts[count{t.id, t.domains[0]}]
	for _, d := range t.domains {
		least = min(least, r.counts[count{t.id, d}])
	}
	return least
}

// mayWait: a rule over labels of the class asks for pods on machines that have yet to start.
func mayWait(r *replay, class int) bool {
	starting := func(t *boundTerm) bool { return t.starting > 0 && (t.spread == nil || t.key != model.LabelHostname) }
	return slices.ContainsFunc(r.spread[class], starting) || slices.ContainsFunc(r.near[class], starting)
}

// exists: the scheduler sees a node there already.
func (r *replay) exists(at int) bool {
	return at < len(r.p.Nodes) && r.p.Nodes[at].State != model.NodeLaunching
}

// nearEnough: every affinity term finds a pod in the domain, or the pod is the
// first of a group that selects itself.
func (r *replay) nearEnough(class, at int) bool {
	c := &r.p.Classes[class]
	first, met := true, true
	for _, t := range r.near[class] {
		domains := r.possible(t.key, at)
		if len(domains) == 0 {
			return false
		}
		elsewhere := slices.ContainsFunc(domains, func(d string) bool { return r.counts[count{t.id, d}] == 0 })
		met = met && (!elsewhere || r.counts[count{t.id, r.aboard(at)}] > 0)
		first = first && t.total == 0 && t.selectsPod(c.Namespace, c.Labels)
	}
	return met || first
}
