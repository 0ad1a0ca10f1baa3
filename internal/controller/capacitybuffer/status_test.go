package capacitybuffer

import (
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	_ "sigs.k8s.io/karpenter/pkg/apis" // adds the kind to the scheme
	api "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"

	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestStatusSaysHowFarTheRoomIsThere(t *testing.T) {
	plan := func(ready, coming int, why string) []provisioning.BufferPlan {
		return []provisioning.BufferPlan{{
			Namespace: "default", Name: "spare", Wanted: 3, Ready: ready, Coming: coming, Why: why, Cost: model.USD(0.25),
		}}
	}
	for name, row := range map[string]struct {
		notReady bool
		replicas int32
		plans    []provisioning.BufferPlan
		reason   string
		says     string
	}{
		"all there":       {replicas: 3, plans: plan(3, 0, ""), reason: "FitsExistingCapacity", says: "all 3 pods; it costs $0.250/h"},
		"on its way":      {replicas: 3, plans: plan(1, 2, ""), reason: "RequiresNewCapacity", says: "room for 1 of 3 pods"},
		"no place":        {replicas: 3, plans: plan(1, 0, "NodePool general is at its limit."), reason: "RequiresNewCapacity", says: "at its limit"},
		"not resolved":    {notReady: true, replicas: 3, plans: plan(3, 0, ""), reason: "NotReadyForProvisioning"},
		"empty":           {replicas: 0, reason: "BufferEmpty"},
		"of another size": {replicas: 4, plans: plan(3, 0, "")},
		"not planned yet": {replicas: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := &api.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare"}}
			b.Status.Replicas = &row.replicas
			ready := metav1.ConditionTrue
			if row.notReady {
				ready = metav1.ConditionFalse
			}
			b.Status.Conditions = []metav1.Condition{{Type: api.ReadyForProvisioningCondition, Status: ready, Reason: "Test"}}
			kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(b).WithStatusSubresource(b).Build()
			s := &status{kube: kube, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
			for range 2 { // the second time changes nothing
				if err := s.write(t.Context(), row.plans); err != nil {
					t.Fatal(err)
				}
			}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			got := apimeta.FindStatusCondition(b.Status.Conditions, api.ProvisioningCondition)
			switch {
			case row.reason == "" && got != nil:
				t.Errorf("condition %+v, want none", got)
			case row.reason == "":
			case got == nil || got.Reason != row.reason || !strings.Contains(got.Message, row.says):
				t.Errorf("condition %+v, want %s with %q", got, row.reason, row.says)
			case (got.Status == metav1.ConditionTrue) != (row.reason == "FitsExistingCapacity"):
				t.Errorf("%s is %s", got.Reason, got.Status)
			}
		})
	}
}

// A plan that is not written down yet gives way to a newer one.
func TestPlannedNeverWaits(t *testing.T) {
	l := NewLoop(Config{Convert: nil})
	l.Planned([]provisioning.BufferPlan{{Name: "old"}})
	l.Planned([]provisioning.BufferPlan{{Name: "new"}})
	if got := <-l.plans; got[0].Name != "new" {
		t.Errorf("kept %v", got)
	}
}
