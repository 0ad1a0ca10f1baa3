package provisioning

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// newNominatingWorld has three pods that wait, and a claim for all of them.
func newNominatingWorld(t *testing.T, more ...client.Object) (*world, karpv1.NodeClaim) {
	w := newWorld(t, objects(nodePool(), waitingPods(3, "1"), more...)...)
	w.settings.Nominations = 100
	w.restart()
	w.plan()
	w.wantClaims(1)
	return w, w.claims()[0]
}

// register joins a claim's node and lets the loop see it.
func (w *world) register(claim *karpv1.NodeClaim, initialized bool) *corev1.Node {
	w.t.Helper()
	node := w.join(*claim, "4")
	w.update(types.NamespacedName{Name: node.Name}, node, func() {
		node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: "c"}}
		if !initialized {
			delete(node.Labels, karpv1.NodeInitializedLabelKey)
		}
	})
	w.see(node)
	return node
}

// see lets the loop's triggers look at an object.
func (w *world) see(o client.Object) {
	w.t.Helper()
	look := w.loop.triggers.podChanged
	if _, is := o.(*corev1.Node); is {
		look = w.loop.triggers.nodeChanged
	}
	if _, err := look(w.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
		w.t.Fatal(err)
	}
	w.sendNominations()
}

// sendNominations makes all requests that are due.
func (w *world) sendNominations() {
	w.t.Helper()
	for w.loop.nominations != nil {
		n, err := w.loop.nominations.send(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// release withdraws what is not taken up, the scheduler quiet for so long.
func (w *world) release(quiet time.Duration) {
	w.t.Helper()
	w.loop.nominations.release(quiet)
	w.sendNominations()
}

// adopt takes over the nominations of an earlier run.
func (w *world) adopt() {
	w.t.Helper()
	if err := w.loop.nominations.adopt(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	w.sendNominations()
}

// nominatedNodes are the nominations of the pods, by name.
func (w *world) nominatedNodes() []string {
	w.t.Helper()
	var list corev1.PodList
	if err := w.kube.List(w.ctx, &list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Status.NominatedNodeName)
	}
	return out
}

func (w *world) wantNominations(nodes ...string) {
	w.t.Helper()
	if got := w.nominatedNodes(); !slices.Equal(got, nodes) {
		w.t.Fatalf("pods are nominated to %q, want %q", got, nodes)
	}
}

// nominate writes a nomination as another client does.
func (w *world) nominate(pod, node string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{}
	if err := w.kube.Get(w.ctx, types.NamespacedName{Namespace: "default", Name: pod}, p); err != nil {
		w.t.Fatal(err)
	}
	p.Status.NominatedNodeName = node
	if err := w.kube.Status().Update(w.ctx, p, client.FieldOwner("kube-scheduler")); err != nil {
		w.t.Fatal(err)
	}
	w.written(p.UID, "kube-scheduler")
	return p
}

func TestNominationsWhenNodeRegisters(t *testing.T) {
	w, claim := newNominatingWorld(t)
	w.wantNominations("", "", "")
	node := w.register(&claim, false)
	w.wantNominations(node.Name, node.Name, node.Name)
	w.sync()
	w.plan()
	w.wantClaims(1) // what is nominated is not planned again
}

// TestNominatedPodsAreToldWhatTheirNodeWaitsFor: they are in no problem, and nothing but the
// node itself brings a round about.
func TestNominatedPodsAreToldWhatTheirNodeWaitsFor(t *testing.T) {
	w, claim := newNominatingWorld(t)
	taint := corev1.Taint{Key: "agent/not-ready", Effect: corev1.TaintEffectNoSchedule}
	now := &karpv1.NodeClaim{}
	w.update(types.NamespacedName{Name: claim.Name}, now, func() { now.Spec.StartupTaints = []corev1.Taint{taint} })
	node := w.register(&claim, false)
	w.wantNominations(node.Name, node.Name, node.Name)
	look := func(age time.Duration, opens bool, told int) {
		t.Helper()
		w.update(types.NamespacedName{Name: node.Name}, node, func() {
			node.CreationTimestamp, node.Spec.Taints = metav1.NewTime(time.Now().Add(-age)), []corev1.Taint{taint}
		})
		again, err := w.loop.triggers.nodeChanged(w.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(node)})
		if err != nil || again.RequeueAfter <= 0 || again.RequeueAfter > fleet.InitializeWithin || w.loop.batch.empty() == opens {
			t.Errorf("a node %s old is looked at again after %s (%v), and a batch is open: %t, want %t",
				age, again.RequeueAfter, err, !w.loop.batch.empty(), opens)
		}
		w.sync()
		w.plan()
		got := w.recorder.of("WaitingForNode")
		if len(got) != told || told > 0 && !strings.Contains(got[0], "startup taint agent/not-ready:NoSchedule") {
			t.Errorf("the events of a node %s old are %q, want %d", age, got, told)
		}
		if on := w.loop.reporter.said.all; len(on) != 3 || on[0].NodeClaim != claim.Name {
			t.Errorf("a node %s old: said of pods: %+v, want NodeClaim %s for three", age, on, claim.Name)
		}
	}
	w.loop.batch.reset()
	look(10*time.Second, false, 0)
	look(2*time.Minute, true, 3)
}

func TestNominationsDisabled(t *testing.T) {
	w := newWorld(t, objects(nodePool(), waitingPods(3, "1"))...)
	w.plan()
	claim := w.claims()[0]
	w.register(&claim, true)
	w.wantNominations("", "", "")
}

func TestNominationClearedBySchedulerIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, false)
		for range nominateTries - 1 {
			taken := w.nominate("web-01", "")
			w.see(taken)
			w.wantNominations(node.Name, "", node.Name) // not at once
			time.Sleep(nominatePause)
			w.see(taken)
			w.wantNominations(node.Name, node.Name, node.Name)
		}
		taken := w.nominate("web-01", "")
		time.Sleep(nominatePause)
		w.see(taken)
		w.wantNominations(node.Name, "", node.Name)
	})
}

func TestNominationNotBoundIsWithdrawnAndPodReplanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		w.bind("web-00", node.Name)
		w.bind("web-01", node.Name)
		w.release(time.Hour)
		w.wantNominations(node.Name, node.Name, node.Name) // the node is too young
		time.Sleep(settleBackoff - time.Millisecond)
		w.release(time.Hour)
		w.wantNominations(node.Name, node.Name, node.Name) // the scheduler looks at the pod again
		time.Sleep(time.Millisecond)
		w.release(0)
		w.wantNominations(node.Name, node.Name, node.Name) // the scheduler is at work
		w.release(settleQuiet)
		w.wantNominations(node.Name, node.Name, "")
		// Another pod has taken its room meanwhile.
		w.update(types.NamespacedName{Name: node.Name}, node, func() {
			node.Spec.Unschedulable = true
			node.Spec.Taints = []corev1.Taint{{Key: "full", Effect: corev1.TaintEffectNoSchedule}}
		})
		w.sync()
		w.plan()
		w.wantClaims(2)
	})
}

func TestNominationsOfPreemptionAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		w.nominate("web-02", "victim")
		node := w.register(&claim, true)
		w.wantNominations(node.Name, node.Name, "victim")
		time.Sleep(settleAtMost)
		w.release(0)
		w.wantNominations("", "", "victim")
	})
}

func TestNominationsEndWithClaimOrNode(t *testing.T) {
	for name, end := range map[string]func(w *world, node *corev1.Node, claim string){
		"claim deleted": func(w *world, _ *corev1.Node, claim string) { w.loop.nominations.claimGone(claim) },
		"node disrupted": func(w *world, node *corev1.Node, _ string) {
			w.update(types.NamespacedName{Name: node.Name}, node, func() { node.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint} })
			w.see(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, claim := newNominatingWorld(t)
			node := w.register(&claim, false)
			end(w, node, claim.Name)
			w.sendNominations()
			w.wantNominations("", "", "")
		})
	}
}

// A pod whose nomination stays would wait for room on that node, and no machine be bought
// for it.
func TestWithdrawalThatFailsIsMadeAgain(t *testing.T) {
	w, claim := newNominatingWorld(t)
	node := w.register(&claim, false)
	w.wantNominations(node.Name, node.Name, node.Name)
	w.onStatusPatch = func(client.Object) error { return apierrors.NewTooManyRequestsError("busy") }
	w.loop.nominations.claimGone(claim.Name)
	if n, err := w.loop.nominations.send(w.ctx); n != 3 || err == nil || !strings.Contains(err.Error(), "withdrawing the nomination of pod default/web-0") {
		t.Fatalf("%d requests were made, %v", n, err)
	}
	w.onStatusPatch = nil
	w.sendNominations()
	w.wantNominations("", "", "")
	w.nominate("web-01", node.Name) // by the scheduler
	w.sendNominations()
	w.wantNominations("", node.Name, "")
	if n := len(w.loop.nominations.written); n != 0 {
		t.Errorf("%d nominations count as written, none is", n)
	}
}

func TestLateWithdrawalLeavesTheNextNomination(t *testing.T) {
	w, claim := newNominatingWorld(t)
	node := w.register(&claim, false)
	pod := w.nominate("web-02", node.Name)
	late := request{key: client.ObjectKeyFromObject(pod), uid: pod.UID}
	w.loop.nominations.written[pod.UID] = node.Name
	w.loop.nominations.again(late)
	w.sendNominations()
	w.wantNominations(node.Name, node.Name, node.Name)
}

func TestNominationsOfEarlierRunAreAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		w.bind("web-00", node.Name)
		w.nominate("web-02", "victim")
		w.restart()
		w.adopt()
		w.wantNominations(node.Name, node.Name, "victim")
		time.Sleep(settleAtMost)
		w.release(0)
		w.wantNominations(node.Name, "", "victim")
	})
}

func TestNominationsToMissingNodeWithdrawnAtStart(t *testing.T) {
	w, claim := newNominatingWorld(t)
	node := w.register(&claim, true)
	w.delete(node)
	w.restart()
	w.adopt()
	w.wantNominations("", "", "")
}

// Nominations leave room for the controller's other requests, and none is made for a pod that
// was bound while it waited for its turn.
func TestNominationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := waitingPods(nominateAtOnce+2, "100m")
		for _, p := range pods {
			p.(*corev1.Pod).Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
		}
		w := newWorld(t, objects(nodePool(), pods)...)
		w.settings.Nominations = 1
		w.restart()
		w.plan()
		w.wantClaims(1)
		bound := make(chan struct{})
		go func() {
			time.Sleep(500 * time.Millisecond)
			w.bind(fmt.Sprintf("web-%02d", nominateAtOnce+1), "elsewhere")
			close(bound)
		}()
		began := time.Now()
		node := w.register(&w.claims()[0], true)
		<-bound
		want := slices.Repeat([]string{node.Name}, nominateAtOnce+1)
		w.wantNominations(append(want, "")...)
		if took := time.Since(began); took < time.Second || took > 3*time.Second {
			t.Errorf("%d nominations beyond the first %d took %s, want one a second", 1, nominateAtOnce, took)
		}
	})
}

// What other pods have taken the room of is withdrawn as soon as the scheduler has had a moment: it keeps
// the rest of the node from other pods.
func TestNominationWithoutRoomIsWithdrawnEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		w.wantNominations(node.Name, node.Name, node.Name)
		other, _ := waitingPods(4, "1500m")[3].(*corev1.Pod)
		other.Spec.NodeName, other.Status = node.Name, corev1.PodStatus{Phase: corev1.PodRunning}
		w.create(other)
		w.sync()
		w.release(0)
		w.wantNominations(node.Name, node.Name, node.Name, "")
		time.Sleep(settleAtLeast)
		w.release(0)
		w.wantNominations(node.Name, node.Name, "", "")
		w.sync()
		w.plan()
		w.wantClaims(2)
	})
}

// A scheduler that takes a nomination back although the node is ready has found that the pod
// does not pass there.
func TestNominationRefusedByReadyNodeIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		node := w.register(&claim, true)
		w.wantNominations(node.Name, node.Name, node.Name)
		w.see(w.nominate("web-00", ""))
		time.Sleep(nominatePause)
		w.sendNominations()
		w.wantNominations("", node.Name, node.Name)
	})
}

// A request that has failed was not refused by the scheduler.
func TestFailedNominationToReadyNodeIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, claim := newNominatingWorld(t)
		w.onStatusPatch = func(client.Object) error { return apierrors.NewInternalError(errors.New("down")) }
		node := w.join(claim, "4")
		w.update(types.NamespacedName{Name: node.Name}, node, func() {
			node.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: "c"}}
		})
		w.loop.nominations.observeNode(node)
		if _, err := w.loop.nominations.send(w.ctx); err == nil {
			t.Fatal("the requests went through")
		}
		w.onStatusPatch = nil
		time.Sleep(nominatePause)
		w.sendNominations()
		w.wantNominations(node.Name, node.Name, node.Name)
	})
}
