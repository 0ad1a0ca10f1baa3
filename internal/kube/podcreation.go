package kube

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// NamespaceNodeSelector is the annotation by which a namespace gives its pods labels to select nodes by.
const NamespaceNodeSelector = "scheduler.alpha.kubernetes.io/node-selector"

// admitNew fills in what the API server fills in when a pod is created: what admit does, and
// what AKS's plugins PodNodeSelector and ExtendedResourceToleration add.
func (a *podAdmission) admitNew(namespace string, s *corev1.PodSpec) error {
	requestLimits(s)
	if s.NodeName == "" {
		a.limitsIn(namespace).defaults.admit(s)
	}
	if selector, why := a.selectorFor(namespace, s); why == "" && len(selector) > 0 {
		merged := maps.Clone(selector)
		maps.Copy(merged, s.NodeSelector)
		s.NodeSelector = merged
	}
	tolerateExtendedResources(s)
	return a.admit(namespace, s)
}

// selectorFor are the labels that a namespace selects the nodes of its pods by, or why the API server
// refuses a pod for them, as k8s.io/kubernetes/plugin/pkg/admission/podnodeselector has it.
func (a *podAdmission) selectorFor(namespace string, s *corev1.PodSpec) (selector map[string]string, why string) {
	text := a.selectors[namespace]
	if text == "" {
		return nil, ""
	}
	selector, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return nil, fmt.Sprintf("Namespace %s has the annotation %s: %q, which must be labels such as KEY=VALUE,KEY=VALUE",
			namespace, NamespaceNodeSelector, text)
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if own, set := s.NodeSelector[key]; set && own != selector[key] {
			return nil, fmt.Sprintf("Namespace %s allows %s=%s alone, by its annotation %s, and the pod's nodeSelector has %s",
				namespace, key, selector[key], NamespaceNodeSelector, own)
		}
	}
	return selector, ""
}

// tolerateExtendedResources lets a pod onto nodes that are tainted with the name of an extended
// resource which it requests, as k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration does.
func tolerateExtendedResources(s *corev1.PodSpec) {
	requested := map[string]bool{}
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if isExtended(name) {
					requested[string(name)] = true
				}
			}
		}
	}
	s.Tolerations = slices.Clone(s.Tolerations)
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		t := corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(s.Tolerations, func(own corev1.Toleration) bool { return own.MatchToleration(&t) }) {
			s.Tolerations = append(s.Tolerations, t)
		}
	}
}
