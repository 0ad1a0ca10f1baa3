package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// An owner that its controller has not come to is waited for by the batches after the first one: the
// controller manager works on a few owners at a time. One that it has seen and that creates nothing
// is kept from it.
func TestQueuedOwnersAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starting := newStartingOwners(clock.RealClock{}, NewExpectedPods(clock.RealClock{}, time.Second))
		queued, refused := replicaSet("queued", 2), replicaSet("refused", 2)
		queued.Status.ObservedGeneration = 0
		starting.observe(queued)
		starting.observe(refused)
		step := func(what string, after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			if got := starting.any(); got != want {
				t.Errorf("%s: waits is %v", what, got)
			}
		}
		step("both have appeared", 0, true)
		step("the first batch has waited", startsWithin, false)
		starting.batchCloses()
		step("the next batch", 0, true)
		queued.Status.ObservedGeneration = 1
		starting.observe(queued)
		step("the controller has come to it", 0, false)
		queued.Status.ObservedGeneration = 0
		starting.observe(queued)
		step("it was not", 0, true)
		step("the controller does not come", queuedWithin, false)
	})
}

// Pods that wait and that their ReplicaSet is about to delete have places, which others may get.
func TestPodsThatAreTooManyAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := NewExpectedPods(clock.RealClock{}, time.Second)
		starting := newStartingOwners(clock.RealClock{}, pods)
		set := replicaSet("web", 3)
		all := podsOf("ReplicaSet", set, 0, 3)
		for _, pod := range all {
			pods.Observe(pod.(*corev1.Pod))
		}
		starting.observe(set)
		if starting.any() {
			t.Error("an owner with the pods that it wants is waited for")
		}
		set.Spec.Replicas = ptr.To[int32](1)
		starting.observe(set)
		if !starting.any() {
			t.Error("two of three pods are to go")
		}
		for i, pod := range all[1:] {
			time.Sleep(startsWithin - time.Millisecond)
			if !starting.any() {
				t.Errorf("%d pods are still to go", 2-i)
			}
			pod.SetDeletionTimestamp(&set.CreationTimestamp)
			pods.Observe(pod.(*corev1.Pod))
			starting.any()
		}
		if starting.any() {
			t.Error("they go, and are waited for")
		}
		set.Spec.Replicas = ptr.To[int32](0)
		starting.observe(set)
		if time.Sleep(startsWithin); starting.any() {
			t.Error("a controller that deletes nothing holds the plan")
		}
		set.Generation++
		starting.observe(set)
		if time.Sleep(startsWithin); !starting.any() {
			t.Error("the controller has not come to it")
		}
		if time.Sleep(queuedWithin); starting.any() {
			t.Error("a controller that does not come holds the plan")
		}
	})
}
