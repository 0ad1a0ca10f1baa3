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
	merged := map[string][]*unit{}
	var keys []string
	for _, u := range units {
		key := a.classKey(u)
		if merged[key] == nil {
			keys = append(keys, key)
		}
		merged[key] = append(merged[key], u)
	}
	for _, key := range keys {
		p.Classes = append(p.Classes, a.class(merged[key]))
	}
	slices.SortStableFunc(p.Classes, func(x, y model.PodClass) int { return compareRefs(x.Pods[0], y.Pods[0]) })
	for _, m := range a.machines {
		for _, pod := range m.pods {
			if pod.counts() {
				a.resolver.shape(pod)
			}
		}
	}
	p.Shapes = a.resolver.list
}

func (a *assembly) classKey(u *unit) string {
	key := u.spec.Key + "\x00" + u.disks.key + "\x00"
	if u.spec.readsOwnNamespace() {
		key += u.namespace
	}
	return key + "\x00" + a.resolver.identity(u.namespace, u.labels)
}

func (s *PodSpec) readsOwnNamespace() bool {
	own := func(t Term) bool { return t.ownNamespace() }
	return len(s.Spread) > 0 || slices.ContainsFunc(s.Affinity, own) || slices.ContainsFunc(s.AntiAffinity, own) ||
		slices.ContainsFunc(s.Preferences, func(t PreferredTerm) bool { return t.Term.ownNamespace() })
}

func (a *assembly) class(units []*unit) model.PodClass {
	first := units[0]
	spec := first.spec
	terms := a.resolver.class(spec, first.namespace)
	c := model.PodClass{
		PodShape:           model.PodShape{Namespace: first.namespace, AntiAffinity: terms.AntiAffinity},
		Requests:           spec.Requests.Vector(a.axes),
		NodeRequirements:   spec.NodeRequirements,
		NodeAlternatives:   spec.NodeAlternatives,
		NodePreferences:    spec.NodePreferences,
		Tolerations:        spec.Tolerations,
		Spread:             terms.Spread,
		Affinity:           terms.Affinity,
		Preferences:        terms.Preferences,
		HostPorts:          spec.HostPorts,
		Volumes:            first.disks.volumes,
		VolumeAlternatives: first.disks.alternatives,
		Priority:           spec.Priority,
	}
	if a.resolver.identity(first.namespace, first.labels) != "" {
		c.Labels = a.resolver.visible(first.labels.Values)
	}
	var pods []*Pod
	for _, u := range units {
		pods = append(pods, u.pods...)
	}
	if len(units) > 1 {
		slices.SortFunc(pods, older)
	}
	c.Pods = make([]model.PodRef, len(pods))
	for i, p := range pods {
		c.Pods[i] = p.Ref
	}
	c.Owner = ownersName(pods)
	return c
}

// ownersName names the workload of a class, or the first one and how many more.
func ownersName(pods []*Pod) string {
	type owner struct{ namespace, kind, name string }
	seen := map[owner]bool{}
	var last owner
	for _, p := range pods {
		if o := (owner{p.Ref.Namespace, p.Owner.Kind, p.Owner.Name}); o.kind != "" && o != last {
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
