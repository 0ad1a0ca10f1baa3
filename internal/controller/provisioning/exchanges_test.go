package provisioning

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// newPairWorld has two machines on their way, for three of six pods of one ReplicaSet each,
// of which the first becomes ready.
func newPairWorld(t *testing.T) (w *world, node *corev1.Node, ready, late karpv1.NodeClaim) {
	t.Helper()
	rs := replicaSet("web", 6)
	w = newWorld(t, objects(nodePool(func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
			Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_D4s_v5"},
		})
	}), podsOf("ReplicaSet", rs, 0, 6, unschedulable))...)
	w.create(rs)
	w.sync()
	w.plan()
	w.wantClaims(2)
	ready, late = w.claims()[0], w.claims()[1]
	if own, others := w.reservedOn(ready.Name), w.reservedOn(late.Name); len(own) != 3 || len(others) != 3 {
		t.Fatalf("pods %v and %v have places, want three on each machine", own, others)
	}
	return w, w.join(ready, "3900m"), ready, late
}

// newExchangeWorld is a pair of machines where the scheduler has bound a pod of the first one
// and two of the second one to the first.
func newExchangeWorld(t *testing.T) (w *world, ready, late karpv1.NodeClaim) {
	t.Helper()
	w, node, ready, late := newPairWorld(t)
	own, others := w.reservedOn(ready.Name), w.reservedOn(late.Name)
	for _, pod := range []string{own[0], others[0], others[1]} {
		w.bind(pod, node.Name)
	}
	w.sync()
	w.plan()
	w.wantClaims(2)
	return w, ready, late
}

// reservedOn are the names of the pods with a place on the machine of a claim.
func (w *world) reservedOn(claim string) []string {
	var out []string
	for uid, name := range w.loop.reservations.claims {
		if name == claim {
			out = append(out, uid[len("uid-"):])
		}
	}
	slices.Sort(out)
	return out
}

// Pods whose room others of their kind have taken have the room that these have left: it is
// not given to pods that come later.
func TestPodsTakeThePlacesThatOthersLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ready, late := newExchangeWorld(t)
		if on := w.reservedOn(late.Name); len(on) != 3 || len(w.reservedOn(ready.Name)) != 0 {
			t.Errorf("pods %v have a place on the machine that is on its way, want all three that wait", on)
		}
		w.create(waitingPods(1, "2")...)
		w.sync()
		w.plan()
		w.wantClaims(3) // there is no room for it on the second one
		w.join(late, "3900m")
		w.sync()
		time.Sleep(settleAtLeast)
		w.plan()
		w.wantClaims(3)
	})
}

// When a machine is lost, one plan replaces it for all pods that go without: also for those
// whose room on another one was taken by pods that had had theirs on the lost one.
func TestLostMachineIsReplacedInOnePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, late := newExchangeWorld(t)
		w.deleteClaim(&late)
		w.mirror.feed.Delete(&late)
		w.sync()
		time.Sleep(observeWithin)
		w.plan()
		w.wantClaims(2)
		if got := w.cores(); got != 6 {
			t.Errorf("machines for %d cores were asked for, want 6: three for each of them", got)
		}
	})
}

// Also where the scheduler binds the pods after the machine was lost, and before it is planned
// again.
func TestPodsOfLostMachineTakeRoomOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, node, _, late := newPairWorld(t)
		others := w.reservedOn(late.Name)
		w.deleteClaim(&late)
		for _, pod := range others {
			w.bind(pod, node.Name)
		}
		w.sync()
		time.Sleep(observeWithin)
		w.plan()
		w.wantClaims(2)
		if got := w.cores(); got != 6 {
			t.Errorf("machines for %d cores were asked for, want 6", got)
		}
	})
}
