package fleet

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// unit is a group of pods that share every record: the first, cheap step of
// grouping.
type unit struct {
	spec      *PodSpec
	labels    *Labels
	namespace string
	disks     disks
	pods      []*Pod
}

type unitKey struct {
	spec      *PodSpec
	labels    *Labels
	namespace string
	disks     string
}

// units groups the pods that need a place, in the order of their first pods,
// and rejects those whose volumes cannot be placed.
func (a *assembly) units() []*unit {
	index := map[unitKey]int{}
	var groups []unit
	at, sizes := make([]int, len(a.wanted)), make([]int, 0, len(a.wanted))
	for i, p := range a.wanted {
		at[i] = -1
		var d disks
		if len(p.Claims) > 0 {
			var problem string
			if d, problem = a.disksOf(p); problem != "" {
				a.reject(p, model.ReasonVolumeTopology, problem, false)
				continue
			}
		}
		key := unitKey{p.Spec, p.Labels, p.Ref.Namespace, d.key}
		u, known := index[key]
		if !known {
			u = len(groups)
			index[key] = u
			groups = append(groups, unit{spec: p.Spec, labels: p.Labels, namespace: p.Ref.Namespace, disks: d})
			sizes = append(sizes, 0)
		}
		at[i] = u
		sizes[u]++
	}
	a.dealTo(groups, at, sizes)
	units := make([]*unit, len(groups))
	for i := range groups {
		units[i] = &groups[i]
	}
	slices.SortFunc(units, func(x, y *unit) int { return older(x.pods[0], y.pods[0]) })
	return units
}

// dealTo gives each group its pods, the oldest first: at is the group of every
// wanted pod, or -1, and sizes how many each gets.
func (a *assembly) dealTo(groups []unit, at, sizes []int) {
	pods := make([]*Pod, len(a.wanted))
	for i := range groups {
		groups[i].pods, pods = pods[:0:sizes[i]], pods[sizes[i]:]
	}
	for i, p := range a.wanted {
		if at[i] >= 0 {
			groups[at[i]].pods = append(groups[at[i]].pods, p)
		}
	}
	for i := range groups {
		slices.SortFunc(groups[i].pods, older)
	}
}

// addClassesAndShapes merges units that no rule of this problem can tell apart
// into classes.
func (a *assembly) addClassesAndShapes(p *model.Problem, units []*unit) {
	index := make(map[classKey]int, len(units))
	merged := make([]*unit, 0, len(units))
	others := map[int][]*unit{} // that share the class of a unit in merged
	for _, u := range units {
		key := a.classKey(u)
		if i, known := index[key]; known {
			others[i] = append(others[i], u)
			continue
		}
		index[key] = len(merged)
		merged = append(merged, u)
	}
	for i, list := range others { // one by one: order does not matter
		merged[i] = joined(slices.Insert(list, 0, merged[i]))
	}
	byName := func(x, y *unit) int { return compareRefs(x.pods[0].Ref, y.pods[0].Ref) }
	slices.SortFunc(merged, byName)
	p.Classes = a.writeClasses(merged)
	for _, m := range a.machines {
		for _, pod := range m.pods {
			if pod.counts() {
				a.resolver.shape(pod)
			}
		}
	}
	p.Shapes = a.resolver.list
}

// joined is one unit with the pods of several, oldest first.
func joined(units []*unit) *unit {
	all := *units[0]
	all.pods = nil
	for _, u := range units {
		all.pods = append(all.pods, u.pods...)
	}
	slices.SortFunc(all.pods, older)
	return &all
}

// classKey is equal for units that may share a class.
type classKey struct {
	spec, identity   int
	disks, namespace string
}

func (a *assembly) classKey(u *unit) classKey {
	key := classKey{spec: a.resolver.number(u.spec), identity: a.resolver.identity(u.namespace, u.labels).number, disks: u.disks.key}
	if u.spec.readsOwnNamespace() {
		key.namespace = u.namespace
	}
	return key
}

func (s *PodSpec) readsOwnNamespace() bool {
	own := func(t Term) bool { return t.ownNamespace() }
	return len(s.Spread) > 0 || slices.ContainsFunc(s.Affinity, own) || slices.ContainsFunc(s.AntiAffinity, own) ||
		slices.ContainsFunc(s.Preferences, func(t PreferredTerm) bool { return t.Term.ownNamespace() })
}

// writeClasses are what the problem says of units.
func (a *assembly) writeClasses(units []*unit) []model.PodClass {
	if len(units) == 0 {
		return nil
	}
	pods, axes := 0, len(a.axes)
	for _, u := range units {
		pods += len(u.pods)
	}
	out := make([]model.PodClass, len(units))
	refs, amounts := make([]model.PodRef, pods), make(model.Resources, axes*len(units))
	for i, u := range units {
		n := len(u.pods)
		out[i].Pods, refs = refs[:n:n], refs[n:]
		out[i].Requests, amounts = amounts[:axes:axes], amounts[axes:]
		a.writeClass(&out[i], u)
	}
	return out
}

// class is what the problem says of a unit.
func (a *assembly) class(u *unit) model.PodClass {
	c := model.PodClass{Pods: make([]model.PodRef, len(u.pods)), Requests: make(model.Resources, len(a.axes))}
	a.writeClass(&c, u)
	return c
}

// writeClass writes a class that has room for its pods and requests, and zeros
// there.
func (a *assembly) writeClass(c *model.PodClass, u *unit) {
	spec := u.spec
	terms := a.resolver.class(spec, u.namespace)
	*c = model.PodClass{
		PodShape:           model.PodShape{Namespace: u.namespace, AntiAffinity: terms.AntiAffinity, Labels: a.resolver.identity(u.namespace, u.labels).labels},
		Requests:           c.Requests,
		PodRules:           spec.PodRules,
		Spread:             terms.Spread,
		Affinity:           terms.Affinity,
		Preferences:        terms.Preferences,
		Volumes:            u.disks.volumes,
		VolumeAlternatives: u.disks.alternatives,
		Pods:               c.Pods,
		Owner:              ownersName(u.pods),
	}
	spec.Requests.addTo(c.Requests, a.axes)
	for i, p := range u.pods {
		c.Pods[i] = p.Ref
	}
}

// ownersName names the workload of a class, or the first one and how many more.
func ownersName(pods []*Pod) string {
	type owner struct{ namespace, kind, name string }
	var seen map[owner]bool
	var last owner
	for _, p := range pods {
		if o := (owner{p.Ref.Namespace, p.Owner.Kind, p.Owner.Name}); o.kind != "" && o != last {
			if seen == nil {
				seen = map[owner]bool{}
			}
			seen[o], last = true, o
		}
	}
	i := slices.IndexFunc(pods, func(p *Pod) bool { return p.Owner.Kind != "" })
	switch {
	case len(seen) == 0:
		return ""
	case len(seen) == 1:
		return pods[i].ownerName()
	}
	return fmt.Sprintf("%s and %d more", pods[i].ownerName(), len(seen)-1)
}
