package kube

import (
	corev1 "k8s.io/api/core/v1"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
)

// features are those that the scheduler wants the kubelet of a pod's node to declare, as of
// Kubernetes 1.36, the first version that asks. Most pods need none. A later version may
// take some for granted; nodes that lack them are then passed over, which is safe.
func features(spec *corev1.PodSpec) []string {
	all := nodedeclaredfeatures.DefaultFramework
	needed, err := all.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: spec}, apiversion.MajorMinor(1, 36))
	if err != nil || needed.IsEmpty() {
		return nil
	}
	names, err := all.Unmap(needed)
	if err != nil {
		return nil
	}
	return names
}
