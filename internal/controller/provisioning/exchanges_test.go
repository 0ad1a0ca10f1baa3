package provisioning

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// newPairWorld has two machines on their way, for three of six pods of one ReplicaSet each,
// of which the first becomes ready.
func newPairWorld(t *testing.T, change ...func(w *world)) (w *world, node *corev1.Node, ready, late karpv1.NodeClaim) {
	t.Helper()
	rs := replicaSet("web", 6)
	w = newWorld(t, objects(nodePool(func(np *karpv1.NodePool) {
		np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
			Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"Standard_D4s_v5"},
		})
	}), podsOf("ReplicaSet", rs, 0, 6, unschedulable))...)
	w.create(rs)
	for _, c := range change {
		c(w)
		w.restart()
	}
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

// A pod that takes over a place on a node which is there already is nominated for it, although
// nothing happens to the node any more.
func TestPodThatTakesAPlaceOnAReadyNodeIsNominated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, ready, late := newPairWorld(t, func(w *world) { w.settings.Nominations = 100 })
		own, others := w.reservedOn(ready.Name), w.reservedOn(late.Name)
		first := w.own(&ready)
		second := w.register(&late, true)
		for pod, node := range map[string]*corev1.Node{own[0]: first, own[1]: first, others[0]: first, others[1]: second, others[2]: second} {
			w.bind(pod, node.Name)
			w.see(w.pod(pod))
		}
		w.see(w.nominate(own[2], "")) // the scheduler has taken it back
		time.Sleep(nominatePause)
		w.sync()
		w.plan()
		w.wantClaims(2)
		w.sendNominations()
		if got := w.pod(own[2]).Status.NominatedNodeName; got != second.Name {
			t.Errorf("pod %s is nominated to %q, want %s, where pod %s has left its place", own[2], got, second.Name, others[0])
		}
	})
}

// pod reads a pod.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	if err := w.kube.Get(w.ctx, types.NamespacedName{Namespace: "default", Name: name}, pod); err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// own makes the node of a claim its own, and lets the loop see it.
func (w *world) own(claim *karpv1.NodeClaim) *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{}
	w.update(types.NamespacedName{Name: "node-" + claim.Name}, node, func() {
		node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: "c"}}
	})
	w.see(node)
	return node
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
