package provisioning

import (
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// The objects of an event are those of the cache, which others read at the same time: looking
// at them writes nothing, not even conditions that are missing yet.
func TestEventsAreLookedAtAndNotChanged(t *testing.T) {
	pool := func(kind string, is metav1.ConditionStatus) *karpv1.NodePool {
		p := &karpv1.NodePool{}
		if kind != "" {
			p.Status.Conditions = []status.Condition{{Type: kind, Status: is}}
		}
		return p
	}
	for name, c := range map[string]struct {
		before, now *karpv1.NodePool
		passes      bool
	}{
		"new, nothing known":    {pool("", ""), pool("", ""), false},
		"becomes Ready":         {pool("", ""), pool(status.ConditionReady, metav1.ConditionTrue), true},
		"is Ready":              {pool(status.ConditionReady, metav1.ConditionTrue), pool(status.ConditionReady, metav1.ConditionTrue), false},
		"is not Ready":          {pool("", ""), pool(status.ConditionReady, metav1.ConditionFalse), false},
		"another condition":     {pool("", ""), pool(karpv1.ConditionTypeNodeClassReady, metav1.ConditionTrue), false},
		"is Ready no more":      {pool(status.ConditionReady, metav1.ConditionTrue), pool(status.ConditionReady, metav1.ConditionFalse), false},
		"is not known any more": {pool(status.ConditionReady, metav1.ConditionTrue), pool("", ""), false},
	} {
		before, now := c.before.DeepCopy(), c.now.DeepCopy()
		if got := poolMayBuyMore().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.now}); got != c.passes {
			t.Errorf("%s: passes %t, want %t", name, got, c.passes)
		}
		if diff := cmp.Diff([]*karpv1.NodePool{before, now}, []*karpv1.NodePool{c.before, c.now}); diff != "" {
			t.Errorf("%s: the objects of the cache were changed (-before +after):\n%s", name, diff)
		}
	}
	gone := &karpv1.NodeClaim{}
	gone.Status.Conditions = []status.Condition{{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue}}
	before := gone.DeepCopy()
	(&triggers{}).claimGone(t.Context(), event.DeleteEvent{Object: gone}, nil)
	if diff := cmp.Diff(before, gone); diff != "" {
		t.Errorf("the NodeClaim of the cache was changed (-before +after):\n%s", diff)
	}
}

// A bound pod is looked at when it came, when it ends and when it is to go.
func TestBoundPodsAreLookedAtSeldom(t *testing.T) {
	now := metav1.Now()
	waiting := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	judged := waiting.DeepCopy()
	judged.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	bound := judged.DeepCopy()
	bound.Spec.NodeName = "a"
	runs := bound.DeepCopy()
	runs.Status.Phase = corev1.PodRunning
	ended, leaves, other := runs.DeepCopy(), runs.DeepCopy(), runs.DeepCopy()
	ended.Status.Phase, leaves.DeletionTimestamp, other.UID = corev1.PodFailed, &now, "v"
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"judged": {waiting, judged, true}, "bound": {judged, bound, true}, "runs": {bound, runs, false}, "ended": {runs, ended, true},
		"is to go": {runs, leaves, true}, "goes on": {leaves, leaves, false}, "another": {runs, other, true}, "back": {bound, waiting, true},
	} {
		if got := podMayNeedNode().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("%s: looked at: %t, want %t", name, got, c.want)
		}
	}
}
