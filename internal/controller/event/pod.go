package event

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/mask"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The reasons of events on pods that Karpenter does not have.
const (
	ReasonPurchaseFailed = "PurchaseFailed"
	ReasonWaitingForNode = "WaitingForNode"
	// ReasonWaitingForMachine is that of pods whose machine Azure does not make.
	ReasonWaitingForMachine = "WaitingForMachine"
)

// MostWaiting is the longest that may be said of a pod after Karpenter's own words.
const MostWaiting = Most - len("Failed to schedule pod, ")

// Waiting says why a pod has no place. It is said again after five minutes, or when the reason
// is another one. The reason is empty for what has no code. Precondition: why has at most
// MostWaiting characters, or its end may be lost.
func Waiting(pod *corev1.Pod, reason model.Reason, why string) events.Event {
	e := lines(scheduling.PodFailedToScheduleEvent(pod, errors.New(why)))[0]
	e.DedupeValues = append(e.DedupeValues, string(reason)) // Karpenter's own would be silent on the new one
	return e
}

// Nominated says where a pod is expected: the node, the NodeClaim, or both.
func Nominated(pod *corev1.Pod, node *corev1.Node, claim *karpv1.NodeClaim) events.Event {
	return lines(scheduling.NominatePodEvent(pod, node, claim))[0]
}

// PurchaseFailed says on a pod that what was bought for it led to nothing.
func PurchaseFailed(pod *corev1.Pod, why string) events.Event {
	return warning(pod, ReasonPurchaseFailed, "Bought in vain: "+why, why)
}

// WaitingForMachine says on a pod why the machine that is on its way for it is not there, in the
// words of the cloud, and when it is given up.
func WaitingForMachine(pod *corev1.Pod, claim, trouble string, givenUp time.Time) events.Event {
	verdict := "Its machine is not there yet: "
	until := fmt.Sprintf("; given up at %s (NodeClaim %s)", givenUp.UTC().Format("15:04:05Z"), claim)
	code, _, _ := strings.Cut(trouble, ":")
	said := model.Sentence(strings.TrimSuffix(mask.Text(trouble), "."), Most-len(verdict)-len(until))
	e := warning(pod, ReasonWaitingForMachine, verdict+said+until, claim, code)
	e.DedupeTimeout = quietFor // until then it is there, or given up
	return e
}

// quietFor is for how long an event about a machine is not sent again.
const quietFor = 15 * time.Minute

// WaitingForNode says on a pod what its node waits for before it takes pods.
func WaitingForNode(pod *corev1.Pod, node string, awaited []string) events.Event {
	return warning(pod, ReasonWaitingForNode, fmt.Sprintf("Its node is not initialized, and nothing else is bought meanwhile: %s (node %s)",
		strings.Join(awaited, "; "), node))
}
