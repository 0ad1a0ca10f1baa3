package kube

import (
	"fmt"

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
