package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A pod whose place on a node that is ready goes to another one is planned again as soon
// as the scheduler must have bound it, and not only with its next reminder.
func TestPodWhosePlaceIsTakenIsPlannedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "5"), readyNode("node-1"))...)
		pod := &corev1.Pod{}
		if err := w.kube.Get(w.ctx, types.NamespacedName{Namespace: "default", Name: "web-00"}, pod); err != nil {
			t.Fatal(err)
		}
		w.loop.pods.Observe(pod)
		w.plan()
		w.wantClaims(0)

		// One that the scheduler never found unschedulable is faster.
		other := waitingPods(1, "5")[0].(*corev1.Pod)
		other.Name, other.UID, other.Status.Conditions, other.Spec.NodeName = "quick", "quick", nil, "node-1"
		w.create(other)
		w.loop.pods.Observe(other)
		w.sync()
		time.Sleep(settleAtLeast - time.Millisecond)
		if w.loop.pods.TakeMissed() {
			t.Fatal("the scheduler may be about to bind the pod")
		}
		time.Sleep(time.Millisecond)
		if w.loop.pods.TakeSettled() {
			t.Fatal("no pod that had waited was bound, so that only the place tells")
		}
		if !w.loop.pods.TakeMissed() {
			t.Fatal("the pod did not get its place, and is not planned again")
		}
		w.plan()
		w.wantClaims(1)
	})
}

// No machine is bought for a pod that has room once another one is gone, until that one should be.
func TestPodWaitsForRoomThatIsVacated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grace, goneBy := int64(30), metav1.NewTime(time.Now().Add(30*time.Second))
		goes := waitingPods(1, "5")[0].(*corev1.Pod)
		goes.Name, goes.UID, goes.Status.Conditions, goes.Spec.NodeName = "goes", "goes", nil, "node-1"
		goes.DeletionTimestamp, goes.DeletionGracePeriodSeconds, goes.Finalizers = &goneBy, &grace, []string{"example.com/stuck"}
		w := newWorld(t, objects(nodePool(), waitingPods(1, "5"), readyNode("node-1"), goes)...)
		w.plan()
		w.wantClaims(0)
		time.Sleep(34 * time.Second)
		w.plan()
		w.wantClaims(0)
		time.Sleep(2 * time.Second)
		w.plan()
		w.wantClaims(1)
	})
}

func TestPlaceIsMissedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expected := NewExpectedPods(clock.RealClock{}, time.Second)
		pod := waitingPods(1, "1")[0].(*corev1.Pod)
		expected.Observe(pod)
		want := func(what string, want bool) {
			t.Helper()
			if got := expected.TakeMissed(); got != want {
				t.Errorf("%s: missed is %v, want %v", what, got, want)
			}
		}
		on := func(node string) {
			expected.Place(map[model.PodRef]string{{Namespace: pod.Namespace, Name: pod.Name}: node})
		}
		on("a")
		want("just placed", false)
		time.Sleep(settleAtLeast)
		want("still waits", true)
		want("asked again", false)
		on("a")
		time.Sleep(settleAtLeast)
		want("the same place again", false)
		on("b")
		time.Sleep(settleAtLeast)
		want("another place, before the pod's reminder is due", false)
		time.Sleep(retryAfter)
		want("no plan found it again", false)
		on("b")
		time.Sleep(settleAtLeast)
		want("another place, later", true)
		time.Sleep(retryAfter)
		on("c")
		pod.Spec.NodeName = "c"
		expected.Observe(pod)
		time.Sleep(settleAtLeast)
		want("bound", false)
		pod.Spec.NodeName, pod.UID = "", "second"
		expected.Observe(pod)
		on("c")
		pod.UID = "third"
		expected.Observe(pod)
		time.Sleep(settleAtLeast)
		want("another pod of that name", false)
		on("c")
		pod.UID = "fourth"
		expected.Observe(pod)
		on("c")
		time.Sleep(settleAtLeast)
		want("another pod of that name, in that place", true)
	})
}

// The loop asks the watch of the scheduler, which opens a batch for a missed place.
func TestMissedPlaceOpensBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(1, "1"), readyNode("node-1"))...)
		pod := waitingPods(1, "1")[0].(*corev1.Pod)
		w.loop.pods.Observe(pod)
		w.plan()
		go w.loop.triggers.watchScheduler(t.Context())
		time.Sleep(settleAtLeast + settleLook)
		synctest.Wait()
		if w.loop.batch.empty() {
			t.Error("the pod still waits, and no batch is open")
		}
	})
}
