package kube

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podAdmission does to the pods of files what the API server does when they are created.
type podAdmission struct {
	priorities priorities
	// ranges has the LimitRanges by namespace and name, runtimes the RuntimeClasses by name.
	ranges   map[string]map[string]*corev1.LimitRange
	runtimes map[string]*nodev1.RuntimeClass
	// limits are what the LimitRanges of namespaces say, once asked for.
	limits map[string]*namespaceLimits
	// selectors are the annotations of namespaces that select nodes, by namespace.
	selectors map[string]string
	// unknown are the classes, by kind and name, which pods name and the input lacks.
	unknown map[string]bool
}

func newPodAdmission() podAdmission {
	return podAdmission{
		priorities: newPriorities(), ranges: map[string]map[string]*corev1.LimitRange{}, runtimes: map[string]*nodev1.RuntimeClass{},
		limits: map[string]*namespaceLimits{}, selectors: map[string]string{}, unknown: map[string]bool{},
	}
}

// namespaceLimits is what the LimitRanges of a namespace say together.
type namespaceLimits struct {
	defaults containerDefaults
	bounds   []boundItem
}

// limitsIn is what the LimitRanges of a namespace say.
func (a *podAdmission) limitsIn(namespace string) *namespaceLimits {
	if a.limits[namespace] == nil {
		ranges := a.ranges[namespace]
		a.limits[namespace] = &namespaceLimits{defaults: defaultsOf(ranges), bounds: boundsOf(ranges)}
	}
	return a.limits[namespace]
}

// survey notes what an object says of pods that are created.
func (a *podAdmission) survey(o client.Object) {
	switch o := o.(type) {
	case *schedulingv1.PriorityClass:
		a.priorities.values[o.Name] = o.Value
		if o.GlobalDefault {
			a.priorities.byDefault = o.Name
		}
	case *corev1.LimitRange:
		if refusedWorkload(o) != nil {
			return
		}
		if a.ranges[o.Namespace] == nil {
			a.ranges[o.Namespace] = map[string]*corev1.LimitRange{}
		}
		a.ranges[o.Namespace][o.Name] = o
		delete(a.limits, o.Namespace)
	case *corev1.Namespace:
		if text, set := o.Annotations[NamespaceNodeSelector]; set { // applying a file without it removes none
			a.selectors[o.Name] = text
		}
	case *nodev1.RuntimeClass:
		a.runtimes[o.Name] = o
	}
}

// priorities are the values of PriorityClasses by name, and the one of pods that name none.
type priorities struct {
	values    map[string]int32
	byDefault string
}

// newPriorities has the classes that every cluster has.
func newPriorities() priorities {
	return priorities{values: map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}}
}

// admitted is a copy of a template as the API server would store its pods.
func (a *podAdmission) admitted(namespace string, template *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, error) {
	out := template.DeepCopy()
	return out, a.admitNew(namespace, &out.Spec)
}

// admit fills in what the API server has filled in and planning reads. A pod with a node has
// been admitted before.
func (a *podAdmission) admit(namespace string, s *corev1.PodSpec) error {
	requestLimits(s)
	if s.NodeName == "" {
		a.limitsIn(namespace).defaults.admit(s)
		if name := s.RuntimeClassName; name != nil {
			class := a.runtimes[*name]
			if class == nil {
				a.unknown["RuntimeClass "+*name] = true
			} else if err := admitRuntimeClass(s, class); err != nil {
				return err
			}
		}
	}
	if s.Priority != nil {
		return nil
	}
	class := cmp.Or(s.PriorityClassName, a.priorities.byDefault)
	if value, known := a.priorities.values[class]; known {
		s.Priority = &value
	} else if class != "" {
		a.unknown["PriorityClass "+class] = true
	}
	return nil
}
