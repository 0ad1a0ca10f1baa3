package container

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resized reports whether the containers of a running pod hold what the pod asks for. It
// may be changed while they run, by the subresource resize.
func Resized(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if i >= 0 && s.Resources != nil && !holds(s.Resources, &pod.Spec.Containers[i].Resources) {
			return false
		}
	}
	return true
}

func holds(has, wants *corev1.ResourceRequirements) bool {
	return equality.Semantic.DeepEqual(has.Requests, wants.Requests) && equality.Semantic.DeepEqual(has.Limits, wants.Limits)
}

// Held is what a pod's containers hold: what they were given, or ask for where they have
// not been given anything yet.
func Held(pod *corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		has := c.Resources.Requests
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name == c.Name && s.AllocatedResources != nil {
				has = s.AllocatedResources
			}
		}
		Add(out, has)
	}
	return out
}

// Add adds amounts to others.
func Add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// Shortage says why a pod cannot have what it asks for: because no node of the size could
// give it, or because the others of the node leave too little now. The words are a real
// kubelet's.
func Shortage(pod *corev1.Pod, total, others corev1.ResourceList) (reason, message string) {
	wants := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		Add(wants, pod.Spec.Containers[i].Resources.Requests)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		want, has, used := wants[name], total[name], others[name]
		amount := func(q resource.Quantity) int64 {
			if name == corev1.ResourceCPU {
				return q.MilliValue()
			}
			return q.Value()
		}
		if want.Cmp(has) > 0 {
			return corev1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d",
				name, amount(want), amount(has))
		}
		if amount(want)+amount(used) > amount(has) && reason == "" {
			reason, message = corev1.PodReasonDeferred, fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				name, amount(want), amount(used), amount(has))
		}
	}
	return reason, message
}

// PendingReason is why the pod's status says that a change waits; empty where none does.
func PendingReason(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			return c.Reason
		}
	}
	return ""
}

// StatusesAfter are the statuses of containers that hold what the pod asks for.
func StatusesAfter(pod *corev1.Pod) []corev1.ContainerStatus {
	out := slices.Clone(pod.Status.ContainerStatuses)
	for i := range out {
		for _, c := range pod.Spec.Containers {
			if c.Name == out[i].Name {
				out[i].Resources, out[i].AllocatedResources = Given(c)
			}
		}
	}
	return out
}

// Given is what a container that runs says it holds; nil where it asks for nothing.
func Given(c corev1.Container) (*corev1.ResourceRequirements, corev1.ResourceList) {
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		return nil, nil
	}
	return &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}, c.Resources.Requests
}
