package karpenter

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// measuredPods passes changes of what Karpenter's metrics of pods tell: where a pod is, its
// phase, and whether it is scheduled and ready. Where the state of each pod is not served
// (detailed), a pod that waits for nothing has told all until it is gone.
func measuredPods(detailed bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*corev1.Pod)
		now, ok2 := e.ObjectNew.(*corev1.Pod)
		switch {
		case !ok1 || !ok2, before.UID != now.UID:
			return true
		case !detailed && settled(before):
			return false
		}
		return before.Spec.NodeName != now.Spec.NodeName || before.Status.Phase != now.Status.Phase ||
			holds(before, corev1.PodScheduled) != holds(now, corev1.PodScheduled) || holds(before, corev1.PodReady) != holds(now, corev1.PodReady)
	}}
}

// holds reports whether a condition of a pod is True.
func holds(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
