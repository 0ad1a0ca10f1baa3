package provisioning

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/internal/model"
)

// podsOfSize are pods that wait, numbered from first on.
func podsOfSize(first, n int, cpu string) []client.Object {
	return waitingPods(first+n, cpu)[first:]
}

func (w *world) wantPlace(pod int, claim string) {
	w.t.Helper()
	if got := w.loop.reservations.claims[fmt.Sprint("pod-", pod)]; got != claim {
		w.t.Errorf("pod %d has its place on %q, want %q", pod, got, claim)
	}
}

// Where the room of a node does not do for all, small pods lose their places: they find others.
func TestLargePodsKeepTheirPlaceFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), podsOfSize(0, 1, "500m"), podsOfSize(1, 1, "3")...)...)
		w.plan()
		w.wantClaims(1)
		first := w.claims()[0].Name
		w.join(w.claims()[0], "3")
		w.sync()
		w.plan()
		time.Sleep(settleAtLeast)
		w.plan()
		w.wantClaims(2)
		w.wantPlace(1, first)
	})
}

// The scheduler may take a nomination back; the pod has its place all the same, for as long as
// others do.
func TestNominatedPodsKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		w.wantNominations(node.Name, node.Name, node.Name)
		w.sync()
		w.plan()
		other, _ := podsOfSize(3, 1, "2")[0].(*corev1.Pod)
		other.Spec.NodeName, other.Status = node.Name, corev1.PodStatus{Phase: corev1.PodRunning}
		w.create(other)
		for i := range 3 {
			w.nominate(fmt.Sprintf("web-%02d", i), "")
		}
		w.sync()
		w.plan()
		w.wantClaims(1) // the scheduler has the time to look at them again
		for i := range 3 {
			w.wantPlace(i, claim.Name)
		}
		time.Sleep(settleAtLeast)
		w.plan()
		w.wantClaims(2)
	})
}

// Two machines that come have room for half of what a pod needs that has lost its place, each.
// Their pods can be arranged so that it fits on one of them.
func TestPromisesAreRearrangedBeforeBuying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), podsOfSize(0, 3, "1250m"))...)
		w.plan()
		w.wantClaims(1)
		for _, more := range [][]client.Object{podsOfSize(3, 3, "1250m"), podsOfSize(6, 1, "2600m")} {
			for _, o := range more {
				w.create(o)
			}
			w.sync()
			w.plan()
		}
		w.wantClaims(3)
		for _, gone := range []int{2, 5} {
			o := podsOfSize(gone, 1, "1250m")[0]
			w.delete(o)
			w.mirror.feed.Delete(o)
		}
		lost := w.loop.reservations.claims["pod-6"]
		for _, c := range w.claims() {
			if c.Name == lost {
				w.join(c, "1")
			}
		}
		w.sync()
		w.plan()
		time.Sleep(settleAtLeast)
		w.plan()
		w.wantClaims(3)
		at := map[string]int{}
		for _, pod := range []int{0, 1, 3, 4, 6} {
			at[w.loop.reservations.claims[fmt.Sprint("pod-", pod)]]++
		}
		if at[""] > 0 || at[lost] > 0 || len(at) != 2 {
			t.Errorf("pods have places on machines %v, want two, and neither %q nor none", at, lost)
		}
	})
}

// A plan that moves nothing leaves the problem as it is.
func TestPlacesStayWhereNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, objects(nodePool(), podsOfSize(0, 3, "1250m"))...)
		w.plan()
		solved := 0
		solve := w.solve
		w.solve = func(p *model.Problem) *model.Plan { solved++; return solve(p) }
		w.create(podsOfSize(3, 1, "1250m")[0])
		w.sync()
		w.plan()
		w.wantClaims(2)
		if solved != 1 {
			t.Errorf("planned %d times, want once", solved)
		}
	})
}

// A pod that is planned onto a node which is ready is not nominated for the one before.
func TestPromiseEndsWithPlaceOnReadyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		ready := w.join(claim, "8")
		w.sync()
		w.loop.reservations.end([]types.UID{"pod-0"})
		w.plan()
		if _, known := w.loop.nominations.claims["pod-0"]; known {
			t.Errorf("the promise stands, want a place on node %s without one", ready.Name)
		}
	})
}
