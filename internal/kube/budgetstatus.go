package kube

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addBudget adds a PodDisruptionBudget. One without a status, as manifests have it, gets the
// one that the disruption controller would give it
// (k8s.io/kubernetes/pkg/controller/disruption), or keeps that of the cluster that the files
// are for, where it asks for the same.
func (e *expander) addBudget(o *policyv1.PodDisruptionBudget) {
	if hasStatus(o) {
		e.out.Objects.Add(o)
		return
	}
	o = o.DeepCopy()
	if live := e.budgets[client.ObjectKeyFromObject(o)]; live != nil && equality.Semantic.DeepEqual(live.Spec, o.Spec) {
		o.Status = live.Status
	} else {
		o.Status = e.budgetStatus(o)
	}
	e.out.Objects.Add(o)
}

// hasStatus reports whether the disruption controller has looked at a PodDisruptionBudget.
func hasStatus(o *policyv1.PodDisruptionBudget) bool {
	return !equality.Semantic.DeepEqual(o.Status, policyv1.PodDisruptionBudgetStatus{})
}

// budgetStatus says how many of its pods a PodDisruptionBudget lets be evicted now: those that
// work beyond those that have to. It is none where the controller cannot tell how many pods
// there should be.
func (e *expander) budgetStatus(o *policyv1.PodDisruptionBudget) (s policyv1.PodDisruptionBudgetStatus) {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return s
	}
	var pods []*corev1.Pod
	healthy := 0
	for _, pod := range e.podsIn(o.Namespace) {
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		pods = append(pods, pod)
		if pod.Spec.NodeName != "" && !hasGone(pod) && !unready(pod) {
			healthy++
		}
	}
	expected, known := len(pods), true
	most, least := o.Spec.MaxUnavailable, o.Spec.MinAvailable
	if most != nil || least != nil && least.Type == intstr.String {
		expected, known = e.expectedPods(pods)
	}
	desired := 0
	switch {
	case most != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(most, expected, true)
		desired, known = max(0, expected-n), known && err == nil
	case least != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(least, expected, true)
		desired, known = n, known && err == nil
	}
	if !known {
		return s
	}
	s.ExpectedPods, s.CurrentHealthy, s.DesiredHealthy = int32(expected), int32(healthy), int32(desired)
	if expected > 0 {
		s.DisruptionsAllowed = int32(max(0, healthy-desired))
	}
	return s
}

// podsIn are the pods that the input holds in a namespace.
func (e *expander) podsIn(namespace string) []*corev1.Pod {
	if e.byNamespace == nil {
		e.byNamespace = map[string][]*corev1.Pod{}
		for _, pod := range e.names {
			if pod != nil {
				e.byNamespace[pod.Namespace] = append(e.byNamespace[pod.Namespace], pod)
			}
		}
	}
	return e.byNamespace[namespace]
}

// expectedPods is how many pods the workloads of some pods want together: as many as their
// files say, or as run now where the input lacks them. It is not known for pods of workloads that
// cannot be scaled.
func (e *expander) expectedPods(pods []*corev1.Pod) (n int, known bool) {
	seen := map[ownerKey]bool{}
	for _, pod := range pods {
		owner := ownerOf(pod)
		key := ownerKey{pod.Namespace, owner.Kind, owner.Name}
		if set := e.sets[client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}]; set != nil && owner.Kind == "ReplicaSet" {
			if d := metav1.GetControllerOf(set); d != nil && d.Kind == "Deployment" {
				key.kind, key.name = d.Kind, d.Name
			}
		}
		switch key.kind {
		case "":
			continue
		case "DaemonSet", "Job", "Node":
			return 0, false
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		if shape, has := e.buffers.shapes[key]; has {
			n += shape.replicas
		} else {
			n += len(e.living[ownerKey{pod.Namespace, owner.Kind, owner.Name}])
		}
	}
	return n, true
}
