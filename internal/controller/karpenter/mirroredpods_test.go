package karpenter

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Karpenter's mirror is told of each change of what it keeps of a pod, and of no other.
func TestMirrorIsToldOfWhatItKeepsOfPods(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		told   bool
	}{
		"nothing": {func(*corev1.Pod) {}, false},
		"it runs": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"it is ready": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}}
		}, false},
		"its containers are": {func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Ready: true}} }, false},
		"it is to go":        {func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false},
		"it is another":      {func(p *corev1.Pod) { p.UID = "v" }, true},
		"it is bound":        {func(p *corev1.Pod) { p.Spec.NodeName = "b" }, true},
		"it has ended":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"labels":             {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "c"} }, true},
		"deletion cost":      {func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "7"} }, true},
		"requests":           {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = cpu("2") }, true},
		"resized": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Resources: &corev1.ResourceRequirements{Requests: cpu("2")}}}
		}, true},
		"resized at first": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: cpu("2")}}
		}, true},
		"resized as a whole":   {func(p *corev1.Pod) { p.Status.Resources = &corev1.ResourceRequirements{Requests: cpu("2")} }, true},
		"allocated as a whole": {func(p *corev1.Pod) { p.Status.AllocatedResources = cpu("2") }, true},
		"resize waits": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{"a": "b"}},
				Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: cpu("1")}}}}}
			after := before.DeepCopy()
			c.change(after)
			if told := mirroredPods().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); told != c.told {
				t.Errorf("without generations: told %t, want %t", told, c.told)
			}
			// The API server counts what is changed of the spec.
			before.Generation, after.Generation = 1, 1
			if name == "it is bound" || name == "requests" {
				after.Generation = 2
			}
			if told := mirroredPods().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); told != c.told {
				t.Errorf("with generations: told %t, want %t", told, c.told)
			}
		})
	}
}
