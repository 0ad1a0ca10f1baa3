package kube

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// deletionCost is the annotation of pods which says that others of their ReplicaSet go first.
const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// surplus is how many of its pods a workload has to delete, since its file wants fewer. It is 0
// where the file does not say how many, or an autoscaler does.
func surplus(had int, replicas *int32, s scaler, scaled bool) int {
	if replicas == nil || *replicas < 0 || scaled && (*replicas > 0 || s.wakes) {
		return 0
	}
	return max(0, had-int(*replicas))
}

// shrink takes so many pods from a workload and returns them: those which its controller deletes
// first.
func (p *livingPods) shrink(key ownerKey, surplus int) []*corev1.Pod {
	if surplus <= 0 {
		return nil
	}
	order := slices.Clone(p.of[key])
	if key.kind == "StatefulSet" {
		slices.SortStableFunc(order, func(a, b *corev1.Pod) int { return ordinal(b, key.name) - ordinal(a, key.name) })
	} else {
		ranks := crowds(order)
		slices.SortStableFunc(order, func(a, b *corev1.Pod) int { return deletedFirst(a, b, ranks) })
	}
	gone := order[:min(surplus, len(order))]
	goes := make(map[*corev1.Pod]bool, len(gone))
	for _, pod := range gone {
		goes[pod] = true
	}
	p.of[key] = slices.DeleteFunc(slices.Clone(p.of[key]), func(pod *corev1.Pod) bool { return goes[pod] })
	return gone
}

// ordinal is the number in the name of a StatefulSet's pod, -1 for none.
func ordinal(pod *corev1.Pod, set string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(pod.Name, set+"-"))
	if err != nil {
		return -1
	}
	return n
}

// crowds are how many of the pods share the node of each.
func crowds(pods []*corev1.Pod) map[*corev1.Pod]int {
	on, out := map[string]int{}, map[*corev1.Pod]int{}
	for _, pod := range pods {
		on[pod.Spec.NodeName]++
	}
	for _, pod := range pods {
		out[pod] = on[pod.Spec.NodeName]
	}
	return out
}

// deletedFirst orders pods as a ReplicaSet deletes them: without a node before with one, pending
// before running, not ready before ready, cheap to delete before dear, with more neighbours of
// the same set before with fewer, young before old. It follows ActivePodsWithRanks of
// k8s.io/kubernetes/pkg/controller (1.37), without restarts and with times to the second.
func deletedFirst(a, b *corev1.Pod, crowd map[*corev1.Pod]int) int {
	return cmp.Or(
		falseFirst(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		falseFirst(a.Status.Phase != corev1.PodPending, b.Status.Phase != corev1.PodPending),
		falseFirst(works(a), works(b)),
		cmp.Compare(costOfDeletion(a), costOfDeletion(b)),
		cmp.Compare(crowd[b], crowd[a]),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// works reports whether a pod is ready, or says nothing of that.
func works(pod *corev1.Pod) bool {
	unready, _ := readiness(pod)
	return !unready
}

// falseFirst orders what is false before what is true.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// costOfDeletion is what the annotation of a pod says, 0 where it has none or one that is no number.
func costOfDeletion(pod *corev1.Pod) int {
	n, err := strconv.ParseInt(pod.Annotations[deletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}
