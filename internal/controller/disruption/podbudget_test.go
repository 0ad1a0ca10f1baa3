package disruption

import (
	"fmt"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// guard is a PodDisruptionBudget of the pods of app web that lets so many go at once.
func guard(pods, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &intstr.IntOrString{IntVal: allowed}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, ExpectedPods: pods, CurrentHealthy: pods, DesiredHealthy: pods - allowed, DisruptionsAllowed: allowed,
		},
	}
}

// allow sets how many pods the budget lets go now.
func (w *world) allow(pods int32) {
	w.t.Helper()
	var b policyv1.PodDisruptionBudget
	w.must(w.kube.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "web"}, &b))
	b.Status.DisruptionsAllowed = pods
	w.must(w.kube.Status().Update(w.ctx, &b))
}

// driftedFleet has full nodes that have drifted, with guarded pods.
func driftedFleet(t *testing.T, nodes, podsEach int, allowed int32) *world {
	objects := []client.Object{nodePool(), guard(int32(nodes*podsEach), allowed)}
	for i := range nodes {
		name := fmt.Sprintf("m%d", i)
		m := drifted(name, "D4")
		// By its last pod event a drain makes progress: the tests' API server dates deletions by
		// the wall clock, which the world is ahead of.
		m[0].(*karpv1.NodeClaim).Status.LastPodEventTime = metav1.NewTime(time.Now().Add(time.Hour))
		objects = append(objects, m...)
		objects = append(objects, running(podsEach, "web", fmt.Sprintf("%dm", 3400/podsEach), name)...)
	}
	return newWorld(t, objects...)
}

// What a move under way, or a node that is drained, has still to evict counts in the decisions after
// it: a budget of one pod lets one node after the other go, not one more with each decision.
func TestPodBudgetBoundsDriftOverDecisions(t *testing.T) {
	w := driftedFleet(t, 6, 2, 1)
	most := func(when string, moves, machines int) {
		t.Helper()
		for range 6 {
			w.pass()
		}
		if got := w.disrupted(); got > moves {
			t.Errorf("%s: %d nodes are being replaced, want %d at most", when, got, moves)
		}
		if got := len(w.claims()) - 6; got != machines {
			t.Errorf("%s: %d machines more than in the beginning, want %d", when, got, machines)
		}
	}
	most("no machine has come", 1, 1)
	w.cloud()
	most("the node is drained", 1, 1)
	w.allow(0)
	most("its pods have to become ready elsewhere", 1, 1)
	w.terminate()
	most("it is gone and the budget is used up", 0, 0)
	w.allow(1)
	most("the budget lets another go", 1, 1)
}

// Two moves that a budget allowed together are ready when it allows only one of them. That one goes,
// and the other waits for it.
func TestPodBudgetThatShrinksLetsOneMoveGo(t *testing.T) {
	w := driftedFleet(t, 2, 1, 2)
	w.pass()
	w.pass()
	if got := w.disrupted(); got != 2 {
		t.Fatalf("%d nodes are being replaced, want both", got)
	}
	w.allow(1)
	w.cloud()
	for range 3 {
		w.pass()
	}
	leaving := 0
	for _, c := range w.claims() {
		if !c.DeletionTimestamp.IsZero() {
			leaving++
		}
	}
	if leaving != 1 {
		t.Errorf("%d nodes are drained though the budget allows one eviction", leaving)
	}
	if w.recorder.has("rolled back") {
		t.Errorf("a move that only waits was rolled back: %q", w.recorder.lines)
	}
	w.terminate()
	w.run(4)
	for _, c := range w.claims() {
		if c.Name == "m0" || c.Name == "m1" {
			t.Errorf("NodeClaim %s is still there", c.Name)
		}
	}
}

// The end of a node whose only pod has to stay comes without its drain: a machine that is bought
// before would stand idle. With a second replica there is a drain to prepare for.
func TestExpiryIsNotPreparedForPodThatHasToStay(t *testing.T) {
	for replicas, want := range map[int32]int{1: 0, 2: 1} {
		now := time.Now().Add(time.Hour) // the clock of newWorld
		b := guard(replicas, replicas-1)
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, &intstr.IntOrString{IntVal: 1}
		if replicas == 1 {
			b.Status.Conditions = []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
			}}
		}
		m := machine("m", "D4")
		c := m[0].(*karpv1.NodeClaim)
		c.Spec.ExpireAfter, c.CreationTimestamp = karpv1.MustParseNillableDuration("1h"), metav1.NewTime(now.Add(-57*time.Minute))
		w := newWorld(t, all([]client.Object{b}, m, running(1, "web", "1700m", "m"))...)
		for range 3 {
			w.pass()
		}
		if got := len(w.claims()) - 1; got != want {
			t.Errorf("%d replicas: %d machines were bought for the node that expires in 3 minutes, want %d", replicas, got, want)
		}
	}
}
