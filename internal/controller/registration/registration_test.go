package registration

import (
	"context"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
)

type told []string

func (r *told) Publish(list ...events.Event) {
	for _, e := range list {
		*r = append(*r, e.Reason+" "+e.Message)
	}
}

func TestBootFailureConditionUntilRegistration(t *testing.T) {
	clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-abc12"}}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(claim).WithObjects(claim).Build()
	answer, asked, heard := "", 0, &told{}
	c := New(kube, heard, clock, func(_ context.Context, name string) (string, error) {
		asked++
		if name != claim.Name {
			t.Errorf("asked about %s", name)
		}
		return answer, nil
	})
	step := func() time.Duration {
		t.Helper()
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		result, err := c.Reconcile(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	set := func(condition string) {
		t.Helper()
		claim.StatusConditions(status.WithClock(clock)).SetTrue(condition)
		if err := kube.Status().Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}

	if again := step(); again != 0 || asked != 0 {
		t.Errorf("before the launch: again in %s, asked %d times", again, asked)
	}
	set(karpv1.ConditionTypeLaunched)
	if again := step(); again != patience || asked != 0 {
		t.Errorf("right after the launch: again in %s, asked %d times", again, asked)
	}
	clock.Step(patience)
	if again := step(); again != every || asked != 1 || len(*heard) != 0 {
		t.Errorf("nothing to say: again in %s, asked %d times, told %v", again, asked, *heard)
	}
	answer = "the machine's agent says Failed: token is invalid"
	if again := step(); again != every {
		t.Errorf("after trouble: again in %s", again)
	}
	const want = "the machine runs and is no node: the machine's agent says Failed: token is invalid"
	if got := claim.StatusConditions().Get(Condition); !got.IsFalse() || got.Reason != Reason || got.Message != want {
		t.Errorf("condition %+v", got)
	}
	if len(*heard) != 1 || (*heard)[0] != Reason+" "+want {
		t.Errorf("told %v", *heard)
	}
	set(karpv1.ConditionTypeRegistered)
	if again := step(); again != 0 || claim.StatusConditions().Get(Condition) != nil {
		t.Errorf("after it joined: again in %s, condition %+v", again, claim.StatusConditions().Get(Condition))
	}
}
