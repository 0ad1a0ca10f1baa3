package provisioning

import (
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
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
