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

// TestOwnersWithoutPodsAreWaitedForShortly keeps the plan for one workload from being
// made while others of the same file have not created a pod yet.
func TestOwnersWithoutPodsAreWaitedForShortly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, second := replicaSet("first", 2), replicaSet("second", 2)
		w.create(first, second)
		w.create(podsOf("ReplicaSet", first, 0, 1)...)
		w.create(podsOf("ReplicaSet", second, 0, 1)...)
		w.sync()
		starting := w.loop.triggers.complete.Starting
		starting.observe(first)
		starting.observe(second)
		w.loop.pods.Observe(podsOf("ReplicaSet", first, 0, 1)[0].(*corev1.Pod))
		owner := []Owner{{Kind: "ReplicaSet", Namespace: "default", Name: "first", UID: "uid-first"}}
		if w.loop.triggers.complete.Complete(t.Context(), owner) {
			t.Error("the second owner is about to create its first pod")
		}
		w.loop.pods.Observe(podsOf("ReplicaSet", second, 0, 1)[0].(*corev1.Pod))
		if !w.loop.triggers.complete.Complete(t.Context(), owner) {
			t.Error("both owners have shown a pod after which the others can be planned")
		}
		third := replicaSet("third", 2)
		starting.observe(third)
		if w.loop.triggers.complete.Complete(t.Context(), owner) {
			t.Error("the third owner is about to create its first pod")
		}
		time.Sleep(startsWithin)
		starting.observe(third)
		if !w.loop.triggers.complete.Complete(t.Context(), owner) {
			t.Error("an owner that creates nothing holds no plan")
		}
	})
}

// The controller manager creates the pods of a few owners at a time. One that had to wait for its
// turn comes with others, though all were made long ago.
func TestOwnerThatComesLateAppearsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starting := newStartingOwners(clock.RealClock{}, NewExpectedPods(clock.RealClock{}, time.Second))
		set := replicaSet("web", 2)
		starting.observe(set)
		owner, made := Owner{Kind: "ReplicaSet", Namespace: "default", Name: "web", UID: "uid-web"}, time.Now()
		if got := starting.appeared(owner); !got.Equal(made) {
			t.Errorf("it appeared %s after it was seen", got.Sub(made))
		}
		time.Sleep(startsWithin)
		if got := starting.appeared(owner); !got.IsZero() {
			t.Errorf("it appeared %s after it was seen, want now", got.Sub(made))
		}
	})
}

func TestJobsOfJobSetAreNotWaitedForOnceOneShowsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := jobOfSet(0, 2, 4), jobOfSet(1, 2, 4)
		pods := NewExpectedPods(clock.RealClock{}, time.Second)
		for _, pod := range podsOf("Job", first, 0, 2) {
			pods.Observe(pod.(*corev1.Pod))
		}
		starting := newStartingOwners(clock.RealClock{}, pods)
		starting.observe(first)
		starting.observe(second)
		if starting.any() {
			t.Error("a Job is waited for although another of its set shows what its pods are like")
		}
		alone := jobOfSet(5, 1, 4)
		alone.Labels = nil
		starting.observe(alone)
		if !starting.any() {
			t.Error("a Job by itself is not waited for")
		}
		starting.forget(alone)
		starting.forget(first)
		starting.forget(second)
		if len(starting.sets.members)+len(starting.sets.of)+len(starting.starts) != 0 {
			t.Errorf("what is gone is kept: %v, %v, %v", starting.sets.members, starting.sets.of, starting.starts)
		}
	})
}

// countedPods counts how often it is asked.
type countedPods struct {
	*ExpectedPods
	asked int
}

func (c *countedPods) Of(owner Owner) Counts {
	c.asked++
	return c.ExpectedPods.Of(owner)
}

// A set may have thousands of Jobs, and is looked at many times in a second while a batch is open.
func TestLargeSetIsLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 500
		pods := &countedPods{ExpectedPods: NewExpectedPods(clock.RealClock{}, time.Second)}
		starting := newStartingOwners(clock.RealClock{}, pods)
		for i := range int32(jobs) {
			job := jobOfSet(i, jobs, 4)
			starting.observe(job)
			if i == 0 {
				for _, pod := range podsOf("Job", job, 0, 2) {
					pods.Observe(pod.(*corev1.Pod))
				}
			}
		}
		pods.asked = 0
		if starting.any() || pods.asked > 2*jobs {
			t.Errorf("Jobs whose set has shown its pods are waited for, or a look asks %d times for pods", pods.asked)
		}
	})
}
