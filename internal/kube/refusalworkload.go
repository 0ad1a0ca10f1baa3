package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusedWorkload is what an API server would refuse of a workload of a file beside its
// template; nil for none, and for what a server has taken already.
func refusedWorkload(o client.Object) error {
	if o.GetUID() != "" {
		return nil
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		return refusedSelector(o.Spec.Selector, &o.Spec.Template)
	case *appsv1.ReplicaSet:
		return refusedSelector(o.Spec.Selector, &o.Spec.Template)
	case *appsv1.StatefulSet:
		return refusedSelector(o.Spec.Selector, &o.Spec.Template)
	case *appsv1.DaemonSet:
		return refusedSelector(o.Spec.Selector, &o.Spec.Template)
	case *corev1.ReplicationController:
		if o.Spec.Template != nil && len(o.Spec.Selector) > 0 {
			return refusedSelector(&metav1.LabelSelector{MatchLabels: o.Spec.Selector}, o.Spec.Template)
		}
	case *batchv1.CronJob:
		return refusedSchedule(o)
	case *corev1.ResourceQuota:
		return refusedQuota(o)
	}
	return nil
}

// refusedQuota refuses limits below zero and scopes that there are not.
func refusedQuota(o *corev1.ResourceQuota) error {
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Hard)) {
		if hard := o.Spec.Hard[name]; hard.Sign() < 0 {
			return fmt.Errorf("spec.hard[%s]: got %s, must not be negative", name, hard.String())
		}
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

// refusedSelector refuses a selector that does not select the pods of its own template.
func refusedSelector(in *metav1.LabelSelector, template *corev1.PodTemplateSpec) error {
	if in == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	if !selector.Matches(labels.Set(template.Labels)) {
		return fmt.Errorf("spec.template.metadata.labels: got %q, must match spec.selector, %s", labels.Set(template.Labels), selector)
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
