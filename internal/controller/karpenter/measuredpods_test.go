package karpenter

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// The metrics of pods are told of each change of what they serve, and of no other. A pod that is
// ready has told all that is served without details.
func TestMetricsAreToldOfWhatTheyServeOfPods(t *testing.T) {
	now := metav1.Now()
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status})
		}
	}
	for name, c := range map[string]struct {
		ready            bool
		change           func(*corev1.Pod)
		told, toldDetail bool
	}{
		"nothing":            {false, func(*corev1.Pod) {}, false, false},
		"labels":             {false, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false, false},
		"nominated":          {false, func(p *corev1.Pod) { p.Status.NominatedNodeName = "a" }, false, false},
		"it fits nowhere":    {false, condition(corev1.PodScheduled, corev1.ConditionFalse), false, false},
		"it is to go":        {false, func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false, false},
		"it is another":      {false, func(p *corev1.Pod) { p.UID = "v" }, true, true},
		"it is bound":        {false, func(p *corev1.Pod) { p.Spec.NodeName = "a" }, true, true},
		"it is scheduled":    {false, condition(corev1.PodScheduled, corev1.ConditionTrue), true, true},
		"it runs":            {false, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true, true},
		"it is ready":        {false, condition(corev1.PodReady, corev1.ConditionTrue), true, true},
		"ready, another":     {true, func(p *corev1.Pod) { p.UID = "v" }, true, true},
		"ready, then not":    {true, func(p *corev1.Pod) { p.Status.Conditions = nil }, false, true},
		"ready, then ended":  {true, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false, true},
		"ready, is to go":    {true, func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false, false},
		"ready, then labels": {true, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
			if c.ready {
				before.Spec.NodeName, before.Status.Phase = "a", corev1.PodRunning
				condition(corev1.PodReady, corev1.ConditionTrue)(before)
			}
			after := before.DeepCopy()
			c.change(after)
			change := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			if told := measuredPods(false).Update(change); told != c.told {
				t.Errorf("told %t, want %t", told, c.told)
			}
			if told := measuredPods(true).Update(change); told != c.toldDetail {
				t.Errorf("with details: told %t, want %t", told, c.toldDetail)
			}
		})
	}
	gone := measuredPods(false)
	if !gone.Create(event.CreateEvent{Object: &corev1.Pod{}}) || !gone.Delete(event.DeleteEvent{Object: &corev1.Pod{}}) {
		t.Error("they are not told of pods that come or go")
	}
}
