package kube

import (
	"cmp"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scaler is an object that holds the number of a workload's pods between two bounds: a
// HorizontalPodAutoscaler, or a ScaledObject of KEDA.
type scaler struct {
	kind, name string
	// min and max are the fewest and the most pods; max is -1 where the object says
	// nothing.
	min, max int
	// wakes says that it scales up what is scaled to zero.
	wakes bool
}

// scalerOf reads an autoscaler of pods and the workload that it scales; ok says whether
// the object is one. A ScaledObject which is paused scales nothing and is none.
func scalerOf(u *unstructured.Unstructured) (target ownerKey, s scaler, ok bool) {
	group := u.GroupVersionKind().Group
	hpa := u.GetKind() == "HorizontalPodAutoscaler" && group == "autoscaling"
	keda := u.GetKind() == "ScaledObject" && group == "keda.sh"
	if !hpa && !keda {
		return ownerKey{}, scaler{}, false
	}
	field := func(name string) string {
		text, _, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", name)
		return text
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	s = scaler{kind: u.GetKind(), name: u.GetName()}
	kind := field("kind")
	if hpa {
		s.min, s.max = bound(spec, "minReplicas", 1), bound(spec, "maxReplicas", -1)
	} else {
		if u.GetAnnotations()[kedaPaused] == "true" {
			return ownerKey{}, scaler{}, false
		}
		s.min, s.max = bound(spec, "minReplicaCount", 0), bound(spec, "maxReplicaCount", kedaMost)
		s.wakes, kind = s.min > 0, cmp.Or(kind, "Deployment")
		if held, err := strconv.Atoi(u.GetAnnotations()[kedaPausedAt]); err == nil && held >= 0 {
			s.min, s.max, s.wakes = held, held, held > 0
		}
	}
	return ownerKey{cmp.Or(u.GetNamespace(), metav1.NamespaceDefault), kind, field("name")}, s, true
}

// What KEDA says of ScaledObjects (keda.sh/docs, "ScaledObject specification" and "Pausing
// autoscaling"): the annotations which hold the number of pods, and the most pods where
// the object does not say.
const (
	kedaPaused   = "autoscaling.keda.sh/paused"
	kedaPausedAt = "autoscaling.keda.sh/paused-replicas"
	kedaMost     = 100
)

// bound is a number of pods in a spec, or what holds where it says nothing.
func bound(spec map[string]any, field string, otherwise int) int {
	if n, set := integer(spec[field]); set {
		return int(n)
	}
	return otherwise
}

// scaled is wants, with a note where the autoscaler has its way.
func (e *expander) scaled(namespace, kind, name string, replicas int) int {
	n := e.wants(namespace, kind, name, replicas)
	if n != replicas {
		s := e.scalers[ownerKey{namespace, kind, name}]
		e.note("%s %s/%s: planned with %d pods as %s %s wants (%d to %d)", kind, namespace, name, n, s.kind, s.name, s.min, s.max)
	}
	return n
}

// wants is how many pods a workload has for which its file asks for so many. A workload
// that is scaled to zero stays so, as a HorizontalPodAutoscaler leaves it alone; KEDA
// does not.
func (e *expander) wants(namespace, kind, name string, replicas int) int {
	s, has := e.scalers[ownerKey{namespace, kind, name}]
	if !has || replicas == 0 && !s.wakes {
		return replicas
	}
	n := max(replicas, s.min)
	if s.max >= 0 {
		n = min(n, s.max)
	}
	return n
}

func (e *expander) note(format string, args ...any) {
	e.out.Notes = append(e.out.Notes, fmt.Sprintf(format, args...))
}
