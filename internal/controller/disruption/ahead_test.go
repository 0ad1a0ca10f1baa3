package disruption

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node that was bought ahead of the next pod of a StatefulSet which creates them one by one stays
// empty while the pod before it boots and starts, but not for ever.
func TestEmptyNodeWaitsForNextPodOfOrderedSet(t *testing.T) {
	w := newWorld(t, all(machine("a", "D2"), machine("b", "D2"))...)
	three, yes, now := int32(3), true, metav1.NewTime(w.clock.Now())
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "db", CreationTimestamp: now},
		Spec: appsv1.StatefulSetSpec{Replicas: &three}}
	first := running(1, "db", "1500m", "a")[0].(*corev1.Pod)
	first.CreationTimestamp = now
	first.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db", Controller: &yes}}
	first.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.create(first)
	w.feed.Apply(set)
	for range 9 {
		w.run(3)
		w.clock.Step(time.Minute)
	}
	if got := w.sizes(); got != "D2 D2" {
		t.Errorf("after nine minutes there are %s, want D2 D2", got)
	}
	w.clock.Step(time.Minute)
	w.run(5)
	if got := w.sizes(); got != "D2" {
		t.Errorf("after ten minutes there are %s, want D2", got)
	}
}
