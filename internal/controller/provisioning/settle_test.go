package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

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
			{settleAtLeast - 1, time.Hour, true},
			{settleAtLeast, settleQuiet - 1, true},
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
		time.Sleep(settleAtLeast)
		if _, held := r.nodes(in, settleQuiet)["c"]; held {
			t.Error("the node is there and the scheduler at rest; the place is still reserved")
		}
	})
}

func TestNominationsEndThoughSchedulerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		release := func() {
			if err := w.loop.nominations.release(w.ctx, 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(settleAtMost - time.Second)
		release()
		w.wantNominations(node.Name, node.Name, node.Name)
		time.Sleep(time.Second)
		release()
		w.wantNominations("", "", "")
	})
}
