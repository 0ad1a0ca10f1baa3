package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusedWorkload is what an API server would refuse of a workload of a file, or of what decides
// about pods, beside the template; nil for none, and for what a server has taken already. The
// rules are those of creation in k8s.io/kubernetes/pkg/apis.
func refusedWorkload(o client.Object) error {
	if o.GetUID() != "" {
		return nil
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		return refusedReplicas(o.Spec.Selector, &o.Spec.Template)
	case *appsv1.ReplicaSet:
		return refusedReplicas(o.Spec.Selector, &o.Spec.Template)
	case *appsv1.StatefulSet:
		if o.Spec.Ordinals != nil && o.Spec.Ordinals.Start < 0 {
			return fmt.Errorf("spec.ordinals.start: got %d, must not be negative", o.Spec.Ordinals.Start)
		}
		return refusedReplicas(o.Spec.Selector, &o.Spec.Template)
	case *appsv1.DaemonSet:
		return refusedReplicas(o.Spec.Selector, &o.Spec.Template)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil && len(o.Spec.Selector) > 0 {
			return refusedReplicas(&metav1.LabelSelector{MatchLabels: o.Spec.Selector}, o.Spec.Template)
		}
	case *batchv1.Job:
		return refusedJob(&o.Spec, "spec")
	case *batchv1.CronJob:
		return cmp.Or(refusedSchedule(o), refusedJob(&o.Spec.JobTemplate.Spec, "spec.jobTemplate.spec"))
	case *corev1.ResourceQuota:
		return refusedQuota(o)
	case *corev1.LimitRange:
		return refusedRange(o)
	case *corev1.Node:
		return cmp.Or(refusedAmounts(o.Status.Capacity, "status.capacity"), refusedAmounts(o.Status.Allocatable, "status.allocatable"))
	case *unstructured.Unstructured:
		if o.GetKind() == "HorizontalPodAutoscaler" && o.GroupVersionKind().Group == "autoscaling" {
			return refusedAutoscaler(o)
		}
	}
	return nil
}

// refusedQuota refuses limits below zero and scopes that there are not.
func refusedQuota(o *corev1.ResourceQuota) error {
	if err := refusedAmounts(o.Spec.Hard, "spec.hard"); err != nil {
		return err
	}
	refuse := func(field string, scope corev1.ResourceQuotaScope) error {
		if known := quotaScopes(); !slices.Contains(known, string(scope)) {
			return fmt.Errorf("%s: got %q, allowed: %s", field, scope, strings.Join(known, ", "))
		}
		return nil
	}
	for i, scope := range o.Spec.Scopes {
		if err := refuse(fmt.Sprintf("spec.scopes[%d]", i), scope); err != nil {
			return err
		}
	}
	if o.Spec.ScopeSelector == nil {
		return nil
	}
	for i := range o.Spec.ScopeSelector.MatchExpressions {
		e := &o.Spec.ScopeSelector.MatchExpressions[i]
		field := fmt.Sprintf("spec.scopeSelector.matchExpressions[%d]", i)
		if err := refuse(field+".scopeName", e.ScopeName); err != nil {
			return err
		}
		switch e.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		default:
			return fmt.Errorf("%s.operator: got %q, allowed: In, NotIn, Exists, DoesNotExist", field, e.Operator)
		}
	}
	return nil
}

// refusedAmounts refuses quantities below zero.
func refusedAmounts(list corev1.ResourceList, field string) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			return fmt.Errorf("%s[%s]: got %s, must not be negative", field, name, q.String())
		}
	}
	return nil
}

// refusedReplicas refuses a selector that does not select the pods of its own template, and pods
// that would end: their number is kept.
func refusedReplicas(in *metav1.LabelSelector, template *corev1.PodTemplateSpec) error {
	if in == nil || len(in.MatchLabels)+len(in.MatchExpressions) == 0 {
		return errors.New("spec.selector: selects nothing, must select the pods of spec.template by their labels")
	}
	selector, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	if !selector.Matches(labels.Set(template.Labels)) {
		return fmt.Errorf("spec.template.metadata.labels: got %q, must match spec.selector, %s", labels.Set(template.Labels), selector)
	}
	if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		return fmt.Errorf("spec.template.spec.restartPolicy: got %q, allowed: Always", policy)
	}
	return nil
}

// refusedJob refuses numbers below zero, and pods that never end: without a policy they are
// started again for ever.
func refusedJob(s *batchv1.JobSpec, field string) error {
	for _, n := range []struct {
		name  string
		value *int32
	}{{"parallelism", s.Parallelism}, {"completions", s.Completions}} {
		if n.value != nil && *n.value < 0 {
			return fmt.Errorf("%s.%s: got %d, must not be negative", field, n.name, *n.value)
		}
	}
	switch policy := s.Template.Spec.RestartPolicy; policy {
	case corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
		return nil
	case "":
		return fmt.Errorf("%s.template.spec.restartPolicy: is missing, allowed: OnFailure, Never", field)
	default:
		return fmt.Errorf("%s.template.spec.restartPolicy: got %q, allowed: OnFailure, Never", field, policy)
	}
}

// refusedRange refuses types of limits that there are not; those with a domain are another's.
func refusedRange(o *corev1.LimitRange) error {
	for i := range o.Spec.Limits {
		switch t := o.Spec.Limits[i].Type; t {
		case corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypePersistentVolumeClaim:
		default:
			if !strings.Contains(string(t), "/") || len(validation.IsQualifiedName(string(t))) > 0 {
				return fmt.Errorf("spec.limits[%d].type: got %q, allowed: Container, Pod, PersistentVolumeClaim", i, t)
			}
		}
	}
	return nil
}

// refusedAutoscaler refuses bounds between which there is no number of pods. Zero as the fewest is
// for a feature gate to allow.
func refusedAutoscaler(o *unstructured.Unstructured) error {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	least, most := bound(spec, "minReplicas", 1), bound(spec, "maxReplicas", 0)
	switch {
	case least < 0:
		return fmt.Errorf("spec.minReplicas: got %d, must not be negative", least)
	case most < 1:
		return fmt.Errorf("spec.maxReplicas: got %d, must be 1 or more", most)
	case least > most:
		return fmt.Errorf("spec.maxReplicas: got %d, must be at least spec.minReplicas, %d", most, least)
	}
	return nil
}

// refusedSchedule refuses a schedule that the controller of CronJobs cannot read, by the
// library that it has.
func refusedSchedule(o *batchv1.CronJob) error {
	if _, err := cron.ParseStandard(o.Spec.Schedule); err != nil {
		return fmt.Errorf(`spec.schedule: got %q, must be a schedule such as "*/5 * * * *" or "@daily": %w`, o.Spec.Schedule, err)
	}
	return nil
}

// quotaScopes are the scopes that a ResourceQuota can have.
func quotaScopes() []string {
	return []string{
		string(corev1.ResourceQuotaScopeTerminating), string(corev1.ResourceQuotaScopeNotTerminating),
		string(corev1.ResourceQuotaScopeBestEffort), string(corev1.ResourceQuotaScopeNotBestEffort),
		string(corev1.ResourceQuotaScopePriorityClass), string(corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
		string(corev1.ResourceQuotaScopeVolumeAttributesClass),
	}
}
