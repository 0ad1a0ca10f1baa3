package karpenter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/state/cost"
)

// answers is a reconciler that answers the same for every object.
func answers(result reconcile.Result, err error) reconcile.Reconciler {
	return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return result, err })
}

// What Karpenter looks at every minute is looked at seldom: but not what failed, and what is
// not to be looked at again.
func TestUnchangedObjectsAreLookedAtSeldom(t *testing.T) {
	minute, failed := reconcile.Result{RequeueAfter: time.Minute}, errors.New("no node")
	times := map[time.Duration]bool{}
	for i := range 100 {
		req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: fmt.Sprint("web-", i)}}
		got, err := again(answers(minute, nil), seldom).Reconcile(t.Context(), req)
		if err != nil || got.RequeueAfter < lookAgain/2 || got.RequeueAfter > 2*lookAgain {
			t.Fatalf("an unchanged object is looked at again after %s, %v", got.RequeueAfter, err)
		}
		times[got.RequeueAfter.Truncate(10*time.Second)] = true
	}
	if len(times) < 50 {
		t.Errorf("100 objects are looked at again at %d times: they come at once", len(times))
	}
	for name, c := range map[string]struct {
		result reconcile.Result
		err    error
	}{
		"failed": {minute, failed}, "not again": {},
	} {
		if got, err := again(answers(c.result, c.err), seldom).Reconcile(t.Context(), reconcile.Request{}); got != c.result || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want %+v, %v", name, got, err, c.result, c.err)
		}
	}
	if got, err := noRounds(answers(minute, nil)).Reconcile(t.Context(), reconcile.Request{}); got.RequeueAfter != 0 || err != nil {
		t.Errorf("without rounds: %+v, %v", got, err)
	}
}

// A NodeClaim whose NodePool is gone has no cost to count, and that is no error.
func TestNodePoolThatIsGoneIsNoError(t *testing.T) {
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	counted := cost.NewClusterCost(t.Context(), nil, kube)
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-a", Labels: map[string]string{
		v1.NodePoolLabelKey: "general", v1.CapacityTypeLabelKey: "spot",
		corev1.LabelTopologyZone: "eastus-1", corev1.LabelInstanceTypeStable: "Standard_D4s_v5",
	}}}
	count := reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, counted.UpdateNodeClaim(ctx, claim)
	})
	if _, err := count.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Fatal("Karpenter counts a NodeClaim without a NodePool: nothing has to be made of its error any more")
	}
	if got, err := withoutPool(count).Reconcile(t.Context(), reconcile.Request{}); err != nil || got.RequeueAfter != poolAgain {
		t.Errorf("%+v, %v, want no error, and another look later", got, err)
	}
	failed := errors.New("no price")
	if _, err := withoutPool(answers(reconcile.Result{}, failed)).Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, failed) {
		t.Errorf("another error is lost: %v", err)
	}
}

// A young node is looked at as often as Karpenter does, since its volume drivers come later
// than it and change nothing of it.
func TestYoungNodesAreLookedAtOften(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "general-a", CreationTimestamp: metav1.NewTime(now)}}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node).Build()
	clk := clocktesting.NewFakeClock(now.Add(young - time.Second))
	a := &Assembly{kube: kube, clock: clk}
	req := reconcile.Request{NamespacedName: types.NamespacedName{Name: node.Name}}
	if got := a.seldomWhenGrown(t.Context(), req, time.Minute); got != time.Minute {
		t.Errorf("a young node is looked at again after %s", got)
	}
	clk.Step(time.Second)
	if got := a.seldomWhenGrown(t.Context(), req, time.Minute); got < lookAgain/2 {
		t.Errorf("a grown node is looked at again after %s", got)
	}
}

// A pod that waits is looked at again for how long it has waited; one that waits for nothing
// is not, or seldom where the labels of its node are served with it.
func TestPodsThatWaitForNothingAreLeftAlone(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	unready := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	for name, c := range map[string]struct {
		node   string
		status corev1.PodStatus
		again  bool
	}{
		"pending":   {"", corev1.PodStatus{Phase: corev1.PodPending}, true},
		"bound":     {"general-a", corev1.PodStatus{Phase: corev1.PodPending, Conditions: ready[:1]}, true},
		"not ready": {"general-a", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: unready}, true},
		"ready":     {"general-a", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready}, false},
		"ended":     {"general-a", corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: unready}, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.PodSpec{NodeName: c.node}, Status: c.status}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "general-a"}}
		kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod, node).Build()
		for _, detailed := range []bool{false, true} {
			o := observability{kube: kube, cluster: state.NewCluster(clocktesting.NewFakeClock(time.Now()), kube, nil), detailed: detailed}
			got, err := o.pods().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}})
			soon, seldom := got.RequeueAfter > 0 && got.RequeueAfter <= time.Minute, got.RequeueAfter >= lookAgain/2
			if err != nil || soon != c.again || seldom != (detailed && !c.again) {
				t.Errorf("%s, detailed %t: looked at again after %s, %v", name, detailed, got.RequeueAfter, err)
			}
		}
	}
}
