package kube

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scaler is a HorizontalPodAutoscaler: it holds the number of a workload's pods between
// two bounds.
type scaler struct {
	name string
	// min and max are the fewest and the most pods; max is zero where the object says
	// nothing.
	min, max int
}

// scalerOf reads a HorizontalPodAutoscaler and the workload that it scales; ok says
// whether the object is one.
func scalerOf(u *unstructured.Unstructured) (target ownerKey, s scaler, ok bool) {
	if u.GetKind() != "HorizontalPodAutoscaler" || u.GroupVersionKind().Group != "autoscaling" {
		return ownerKey{}, scaler{}, false
	}
	field := func(name string) string {
		text, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", name)
		return text
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	least, set := integer(spec["minReplicas"])
	if !set {
		least = 1
	}
	most, _ := integer(spec["maxReplicas"])
	target = ownerKey{cmp.Or(u.GetNamespace(), metav1.NamespaceDefault), field("kind"), field("name")}
	return target, scaler{name: u.GetName(), min: int(least), max: int(most)}, true
}

// scaled is wants, with a note where the autoscaler has its way.
func (e *expander) scaled(namespace, kind, name string, replicas int) int {
	n := e.wants(namespace, kind, name, replicas)
	if n != replicas {
		s := e.scalers[ownerKey{namespace, kind, name}]
		e.note("%s %s/%s: planned with %d pods as HorizontalPodAutoscaler %s wants (%d to %d)", kind, namespace, name, n, s.name, s.min, s.max)
	}
	return n
}

// wants is how many pods a workload has for which its file asks for so many: a workload
// that is scaled to zero stays so, as the autoscaler leaves it alone.
func (e *expander) wants(namespace, kind, name string, replicas int) int {
	s, has := e.scalers[ownerKey{namespace, kind, name}]
	if !has || replicas == 0 {
		return replicas
	}
	n := max(replicas, s.min)
	if s.max > 0 {
		n = min(n, s.max)
	}
	return n
}

func (e *expander) note(format string, args ...any) {
	e.out.Notes = append(e.out.Notes, fmt.Sprintf(format, args...))
}
