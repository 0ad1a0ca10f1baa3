package karpenter

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// mirroredPods passes changes of what Karpenter's mirror of the cluster keeps of a pod: where it
// is, whether it has ended, what it asks for, its ports, volumes, affinities, and what its
// eviction costs. In the course tenth of bench/race, where 1,000 pods start and 900 end, two fifths
// of the changes tell it nothing.
func mirroredPods() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*corev1.Pod)
		now, ok2 := e.ObjectNew.(*corev1.Pod)
		return !ok1 || !ok2 || !sameInMirror(before, now)
	}}
}

func sameInMirror(a, b *corev1.Pod) bool {
	return a.UID == b.UID && a.Spec.NodeName == b.Spec.NodeName && podutils.IsTerminal(a) == podutils.IsTerminal(b) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && sameSpec(a, b) &&
		resizing(a) == resizing(b) && equality.Semantic.DeepEqual(a.Status.Resources, b.Status.Resources) &&
		equality.Semantic.DeepEqual(a.Status.AllocatedResources, b.Status.AllocatedResources) &&
		slices.EqualFunc(resized(a), resized(b), func(a, b corev1.ContainerStatus) bool {
			return a.Name == b.Name && equality.Semantic.DeepEqual(a.Resources, b.Resources) &&
				equality.Semantic.DeepEqual(a.AllocatedResources, b.AllocatedResources)
		})
}

// sameSpec compares the specs of two states of one pod. The API server counts changes of the
// spec in metadata.generation since Kubernetes 1.33; before, it is 0.
func sameSpec(a, b *corev1.Pod) bool {
	if a.Generation > 0 && b.Generation > 0 {
		return a.Generation == b.Generation
	}
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// resizing is why the kubelet has not given the pod what it asks for, where it was resized;
// empty for most.
func resizing(p *corev1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodResizePending {
			return c.Reason
		}
	}
	return ""
}

// resized are the containers of which the status says what they have been given.
func resized(p *corev1.Pod) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			if s := &statuses[i]; s.Resources != nil || len(s.AllocatedResources) > 0 {
				out = append(out, *s)
			}
		}
	}
	return out
}
