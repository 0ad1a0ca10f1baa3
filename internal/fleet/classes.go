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
	index := map[unitKey]*unit{}
	var units []*unit
	for _, p := range a.wanted {
		var d disks
		if len(p.Claims) > 0 {
			var problem string
			if d, problem = a.disksOf(p); problem != "" {
				a.reject(p, model.ReasonVolumeTopology, problem, false)
				continue
			}
		}
		key := unitKey{p.Spec, p.Labels, p.Ref.Namespace, d.key}
		u := index[key]
		if u == nil {
			u = &unit{spec: p.Spec, labels: p.Labels, namespace: p.Ref.Namespace, disks: d}
			index[key] = u
			units = append(units, u)
		}
		u.pods = append(u.pods, p)
	}
	for _, u := range units {
		slices.SortFunc(u.pods, older)
	}
	slices.SortFunc(units, func(x, y *unit) int { return older(x.pods[0], y.pods[0]) })
	return units
}

// addClassesAndShapes merges units that no rule of this problem can tell apart
// into classes.
func (a *assembly) addClassesAndShapes(p *model.Problem, units []*unit) {
	index := make(map[classKey]int, len(units))
	var merged [][]*unit
	for _, u := range units {
		key := a.classKey(u)
		i, known := index[key]
		if !known {
			i = len(merged)
			index[key] = i
			merged = append(merged, nil)
		}
		merged[i] = append(merged[i], u)
	}
	byName := func(x, y []*unit) int { return compareRefs(x[0].pods[0].Ref, y[0].pods[0].Ref) }
	for _, list := range merged {
		if len(list) > 1 {
			list[0] = joined(list)
		}
	}
	slices.SortFunc(merged, byName)
	if len(merged) > 0 {
		p.Classes = make([]model.PodClass, len(merged))
	}
	for i, list := range merged {
		a.writeClass(&p.Classes[i], list[0])
	}
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

// class is what the problem says of a unit.
func (a *assembly) class(u *unit) model.PodClass {
	var c model.PodClass
	a.writeClass(&c, u)
	return c
}

func (a *assembly) writeClass(c *model.PodClass, u *unit) {
	spec := u.spec
	terms := a.resolver.class(spec, u.namespace)
	*c = model.PodClass{
		PodShape:           model.PodShape{Namespace: u.namespace, AntiAffinity: terms.AntiAffinity, Labels: a.resolver.identity(u.namespace, u.labels).labels},
		Requests:           spec.Requests.Vector(a.axes),
		NodeRequirements:   spec.NodeRequirements,
		NodeAlternatives:   spec.NodeAlternatives,
		NodePreferences:    spec.NodePreferences,
		Tolerations:        spec.Tolerations,
		Spread:             terms.Spread,
		Affinity:           terms.Affinity,
		Preferences:        terms.Preferences,
		HostPorts:          spec.HostPorts,
		Volumes:            u.disks.volumes,
		VolumeAlternatives: u.disks.alternatives,
		Priority:           spec.Priority,
		Pods:               make([]model.PodRef, len(u.pods)),
		Owner:              ownersName(u.pods),
	}
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
