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

// budgetStatuses give PodDisruptionBudgets of files the status that Kubernetes would give them.
type budgetStatuses struct {
	// given are the budgets that have a status.
	given map[client.ObjectKey]*policyv1.PodDisruptionBudget
	// names and living are the pods of the input, byNamespace those by their namespace, nil until they
	// are asked for; shapes say how many pods workloads want.
	names       podNames
	living      *livingPods
	byNamespace map[string][]*corev1.Pod
	shapes      map[ownerKey]bufferShape
}

// complete is a PodDisruptionBudget with a status. One without, as manifests have it, gets the
// one that the disruption controller would give it
// (k8s.io/kubernetes/pkg/controller/disruption), or keeps that of the cluster that the files
// are for, where it asks for the same.
func (s *budgetStatuses) complete(o *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	if hasStatus(o) {
		return o
	}
	o = o.DeepCopy()
	if live := s.given[client.ObjectKeyFromObject(o)]; live != nil && equality.Semantic.DeepEqual(live.Spec, o.Spec) {
		o.Status = live.Status
	} else {
		o.Status = s.of(o)
	}
	return o
}

// hasStatus reports whether the disruption controller has looked at a PodDisruptionBudget.
func hasStatus(o *policyv1.PodDisruptionBudget) bool {
	return !equality.Semantic.DeepEqual(o.Status, policyv1.PodDisruptionBudgetStatus{})
}

// of says how many of its pods a PodDisruptionBudget lets be evicted now: those that
// work beyond those that have to. It is none where the controller cannot tell how many pods
// there should be.
func (s *budgetStatuses) of(o *policyv1.PodDisruptionBudget) (status policyv1.PodDisruptionBudgetStatus) {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return status
	}
	var pods []*corev1.Pod
	healthy := 0
	for _, pod := range s.podsIn(o.Namespace) {
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		pods = append(pods, pod)
		if unready, _ := readiness(pod); pod.Spec.NodeName != "" && !hasGone(pod) && !unready {
			healthy++
		}
	}
	expected, known := len(pods), true
	most, least := o.Spec.MaxUnavailable, o.Spec.MinAvailable
	if most != nil || least != nil && least.Type == intstr.String {
		expected, known = s.expectedPods(pods)
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
		return status
	}
	status.ExpectedPods, status.CurrentHealthy, status.DesiredHealthy = int32(expected), int32(healthy), int32(desired)
	if expected > 0 {
		status.DisruptionsAllowed = int32(max(0, healthy-desired))
	}
	return status
}

// podsIn are the pods that the input holds in a namespace.
func (s *budgetStatuses) podsIn(namespace string) []*corev1.Pod {
	if s.byNamespace == nil {
		s.byNamespace = map[string][]*corev1.Pod{}
		for _, pod := range s.names {
			if pod != nil {
				s.byNamespace[pod.Namespace] = append(s.byNamespace[pod.Namespace], pod)
			}
		}
	}
	return s.byNamespace[namespace]
}

// expectedPods is how many pods the workloads of some pods want together: as many as their
// files say, or as run now where the input lacks them. It is not known for pods of workloads that
// cannot be scaled.
func (s *budgetStatuses) expectedPods(pods []*corev1.Pod) (n int, known bool) {
	seen := map[ownerKey]bool{}
	for _, pod := range pods {
		owner := ownerOf(pod)
		key := ownerKey{pod.Namespace, owner.Kind, owner.Name}
		if set := s.living.sets[client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}]; set != nil && owner.Kind == "ReplicaSet" {
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
		if shape, has := s.shapes[key]; has {
			n += shape.replicas
		} else {
			n += len(s.living.of[ownerKey{pod.Namespace, owner.Kind, owner.Name}])
		}
	}
	return n, true
}
