package fleet

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// podClass is a set of pods that share every record: the first, cheap step of
// grouping. The problem's classes are merged from these.
type podClass struct {
	spec      *PodSpec
	labels    *Labels
	namespace string
	disks     disks
	devices   devices
	pods      []*Pod
}

// recordKey is equal for pods that share every record.
type recordKey struct {
	spec      *PodSpec
	labels    *Labels
	namespace string
	// disks is disks.key, devices is devices.key.
	disks, devices string
}

// classWriter merges pod classes and states them in the problem's terms.
type classWriter struct {
	// terms has listened to all pods that the problem places.
	terms *resolver
	axes  model.Axes
}

// merged unites the classes that no rule of this problem can tell apart, and
// orders the result by the name of each class's oldest pod.
func (w *classWriter) merged(classes []*podClass) []*podClass {
	index := make(map[classKey]int, len(classes))
	out := make([]*podClass, 0, len(classes))
	others := map[int][]*podClass{} // equal to the class at this index of out
	for _, c := range classes {
		key := w.key(c)
		if i, known := index[key]; known {
			others[i] = append(others[i], c)
			continue
		}
		index[key] = len(out)
		out = append(out, c)
	}
	for i, list := range others { // one by one: order does not matter
		out[i] = joined(slices.Insert(list, 0, out[i]))
	}
	slices.SortFunc(out, func(x, y *podClass) int { return compareRefs(x.pods[0].Ref, y.pods[0].Ref) })
	return out
}

// joined is one class with the pods of several, oldest first.
func joined(classes []*podClass) *podClass {
	all := *classes[0]
	all.pods = nil
	for _, c := range classes {
		all.pods = append(all.pods, c.pods...)
	}
	slices.SortFunc(all.pods, older)
	return &all
}

// classKey is equal for classes that may be merged.
type classKey struct {
	// spec and identity are the resolver's numbers of the spec and of what terms
	// see of the pods.
	spec, identity int
	// disks is disks.key, devices is devices.key. namespace is empty where no term of the
	// pods depends on it.
	disks, devices, namespace string
}

func (w *classWriter) key(c *podClass) classKey {
	key := classKey{
		spec: w.terms.number(c.spec), identity: w.terms.identity(c.namespace, c.labels).number,
		disks: c.disks.key, devices: c.devices.key,
	}
	if c.spec.readsOwnNamespace() {
		key.namespace = c.namespace
	}
	return key
}

// readsOwnNamespace reports whether some term of the spec means the namespace that
// the pod is in.
func (s *PodSpec) readsOwnNamespace() bool {
	own := func(t Term) bool { return t.ownNamespace() }
	return len(s.Spread) > 0 || slices.ContainsFunc(s.Affinity, own) || slices.ContainsFunc(s.AntiAffinity, own) ||
		slices.ContainsFunc(s.Preferences, func(t PreferredTerm) bool { return t.Term.ownNamespace() })
}

// writeAll states classes in the problem's terms, in their order. Together they
// take few allocations: a problem can have many thousands.
func (w *classWriter) writeAll(classes []*podClass) []model.PodClass {
	if len(classes) == 0 {
		return nil
	}
	pods, axes := 0, len(w.axes)
	for _, c := range classes {
		pods += len(c.pods)
	}
	out := make([]model.PodClass, len(classes))
	refs, amounts := make([]model.PodRef, pods), make(model.Resources, axes*len(classes))
	for i, c := range classes {
		n := len(c.pods)
		out[i].Pods, refs = refs[:n:n], refs[n:]
		out[i].Requests, amounts = amounts[:axes:axes], amounts[axes:]
		w.fill(&out[i], c)
	}
	return out
}

// write states one class in the problem's terms.
func (w *classWriter) write(c *podClass) model.PodClass {
	out := model.PodClass{Pods: make([]model.PodRef, len(c.pods)), Requests: make(model.Resources, len(w.axes))}
	w.fill(&out, c)
	return out
}

// fill writes to a class that has room for its pods and requests, and zeros
// there.
func (w *classWriter) fill(out *model.PodClass, c *podClass) {
	spec := c.spec
	terms := w.terms.class(spec, c.namespace)
	*out = model.PodClass{
		PodShape: model.PodShape{
			Namespace:    c.namespace,
			AntiAffinity: terms.AntiAffinity,
			Labels:       w.terms.identity(c.namespace, c.labels).labels,
		},
		Requests:           out.Requests,
		PodRules:           spec.PodRules,
		Spread:             terms.Spread,
		Affinity:           terms.Affinity,
		Preferences:        terms.Preferences,
		Volumes:            c.disks.volumes,
		VolumeAlternatives: c.disks.alternatives,
		Devices:            append(slices.Clip(c.devices.requirements), featureRequirements(spec.Features)...),
		Pods:               out.Pods,
		Owner:              ownersName(c.pods),
	}
	if c := w.terms.shares.of(c.namespace, c.labels); c != nil {
		out.Spread = append(slices.Clip(out.Spread), *c)
	}
	spec.Requests.addTo(out.Requests, w.axes)
	c.devices.addTo(out.Requests, w.axes)
	for i, p := range c.pods {
		out.Pods[i] = p.Ref
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
		return pods[i].OwnerName()
	}
	return fmt.Sprintf("%s and %d more", pods[i].OwnerName(), len(seen)-1)
}
