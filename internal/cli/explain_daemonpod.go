package cli

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// daemonPod is about a pod of a DaemonSet which waits. Its node is there, and may lack the room.
func daemonPod(pod *corev1.Pod) *story {
	node := daemonNode(pod)
	s := waitingPod(model.PodRef{Namespace: pod.Namespace, Name: pod.Name}, fmt.Sprintf(
		"waits for node %s: it is a DaemonSet's, for which no other node would do", cmp.Or(node, "of its own")))
	s.Fix = "Give the DaemonSet a higher priority, so that other pods of the node make way for its pods, or let it ask for less."
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			s.say("the scheduler says: %s", c.Message)
		}
	}
	s.say("nothing is bought for it; nodes that are bought from now on have room for it")
	if node != "" {
		s.Commands = []string{"kubectl describe node " + node}
	}
	return s
}

// daemonNode is the node that a pod of a DaemonSet was created for, empty where it names none.
func daemonNode(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
