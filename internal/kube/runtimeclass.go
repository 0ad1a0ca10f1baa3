package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
)

// admitRuntimeClass gives a pod what its RuntimeClass adds when the API server admits it:
// the overhead, which takes room on the node, and the node selector and tolerations that
// lead to the nodes which have the runtime. It may be repeated. The error says which label
// the pod and its class want with different values, for which the API server refuses it.
func admitRuntimeClass(s *corev1.PodSpec, class *nodev1.RuntimeClass) error {
	if class.Overhead != nil {
		s.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	selector := make(map[string]string, len(s.NodeSelector)+len(class.Scheduling.NodeSelector))
	for key, value := range s.NodeSelector {
		selector[key] = value
	}
	for key, value := range class.Scheduling.NodeSelector {
		if own, set := selector[key]; set && own != value {
			return fmt.Errorf("spec.nodeSelector[%s]: got %q, but RuntimeClass %s allows: %s", key, own, class.Name, value)
		}
		selector[key] = value
	}
	if len(selector) > 0 {
		s.NodeSelector = selector
	}
	s.Tolerations = slices.Clone(s.Tolerations)
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(s.Tolerations, func(own corev1.Toleration) bool { return own.MatchToleration(&t) }) {
			s.Tolerations = append(s.Tolerations, t)
		}
	}
	return nil
}
