package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A scheduler that never comes to rest does not keep a place reserved for ever.
func TestReservationsEndThoughSchedulerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReservations(clock.RealClock{})
		in := &fleet.Input{Problem: &model.Problem{Nodes: []model.Node{{Name: "n", Claim: "c", State: model.NodeReady}}}}
		held := func(quiet time.Duration) bool { _, is := r.nodes(in, quiet)["c"]; return is }
		for _, step := range []struct {
			at, quiet time.Duration
			want      bool
		}{
			{0, time.Hour, true}, // the node is too young
			{settleBackoff - 1, time.Hour, true},
			{settleBackoff, settleQuiet - 1, true},
			{settleAtMost - 1, 0, true},
			{settleAtMost, 0, false},
		} {
			start := time.Now()
			if first, seen := r.arrived["c"]; seen {
				start = first
			}
			time.Sleep(time.Until(start.Add(step.at)))
			if got := held(step.quiet); got != step.want {
				t.Errorf("%s after the node came, the scheduler quiet for %s: held is %v, want %v", step.at, step.quiet, got, step.want)
			}
		}
	})
}

func TestReservationsEndWhenSchedulerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReservations(clock.RealClock{})
		in := &fleet.Input{Problem: &model.Problem{Nodes: []model.Node{{Name: "n", Claim: "c", State: model.NodeReady}}}}
		r.nodes(in, 0)
		time.Sleep(settleBackoff)
		if _, held := r.nodes(in, settleQuiet)["c"]; held {
			t.Error("the node is there and the scheduler at rest; the place is still reserved")
		}
	})
}

// A pod that the scheduler will look at again keeps its place while there is room for it.
// When other pods have taken the room, it is planned again at once.
func TestPlaceIsKeptWhileThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
		w.plan()
		w.wantClaims(1)
		claim := w.claims()[0]
		node := w.join(claim, "3")
		w.sync()
		w.plan()
		time.Sleep(settleAtLeast)
		w.plan()
		w.wantClaims(1)
		if !w.loop.reservations.hold(claim.Name) {
			t.Error("the scheduler has not looked at the pods again, and their places are given up")
		}
		w.bind("web-00", node.Name)
		other, _ := waitingPods(4, "1")[3].(*corev1.Pod)
		other.Spec.NodeName, other.Status = node.Name, corev1.PodStatus{Phase: corev1.PodRunning}
		w.create(other)
		w.sync()
		w.plan()
		w.wantClaims(2)
	})
}

func TestNominationsEndThoughSchedulerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		release := func() { w.release(0) }
		time.Sleep(settleAtMost - time.Second)
		release()
		w.wantNominations(node.Name, node.Name, node.Name)
		time.Sleep(time.Second)
		release()
		w.wantNominations("", "", "")
	})
}
