package event

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"
)

// The reasons of events on pods that Karpenter does not have.
const (
	ReasonPurchaseFailed = "PurchaseFailed"
	ReasonWaitingForNode = "WaitingForNode"
)

// MostWaiting is the longest that may be said of a pod after Karpenter's own words.
const MostWaiting = Most - len("Failed to schedule pod, ")

// Waiting says why a pod has no place. Precondition: why has at most MostWaiting characters, or
// its end may be lost.
func Waiting(pod *corev1.Pod, why string) events.Event {
	return lines(scheduling.PodFailedToScheduleEvent(pod, errors.New(why)))[0]
}

// Nominated says where a pod is expected: the node, the NodeClaim, or both.
func Nominated(pod *corev1.Pod, node *corev1.Node, claim *karpv1.NodeClaim) events.Event {
	return lines(scheduling.NominatePodEvent(pod, node, claim))[0]
}

// PurchaseFailed says on a pod that what was bought for it led to nothing.
func PurchaseFailed(pod *corev1.Pod, why string) events.Event {
	return warning(pod, ReasonPurchaseFailed, "Bought in vain: "+why, why)
}

// WaitingForNode says on a pod what its node waits for before it takes pods.
func WaitingForNode(pod *corev1.Pod, node string, awaited []string) events.Event {
	return warning(pod, ReasonWaitingForNode, fmt.Sprintf("Its node is not initialized, and nothing else is bought meanwhile: %s (node %s)",
		strings.Join(awaited, "; "), node))
}
