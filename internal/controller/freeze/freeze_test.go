package freeze

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

type recorder struct{ said []string }

func (r *recorder) Publish(evs ...events.Event) {
	for _, e := range evs {
		r.said = append(r.said, e.Reason+": "+e.Message)
	}
}

// TestConditionFollowsFreeze: the condition and the events say when a freeze begins, when
// it is another one and when it ends, and nothing is written in between.
func TestConditionFollowsFreeze(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", Annotations: map[string]string{
		v1beta1.AnnotationFrozen: "release day", v1beta1.AnnotationFrozenUntil: start.Add(time.Hour).Format(time.RFC3339),
	}}}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool).WithStatusSubresource(&karpv1.NodePool{}).Build()
	told, clk := &recorder{}, clocktesting.NewFakeClock(start)
	loop := &Loop{Kube: kube, Recorder: told, Clock: clk}
	look := func(want metav1.ConditionStatus, message string, events int) {
		t.Helper()
		for range 2 {
			if err := loop.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := &karpv1.NodePool{}
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(pool), got); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(got.Status.Conditions, func(c status.Condition) bool { return c.Type == Condition })
		if i < 0 || got.Status.Conditions[i].Status != want || got.Status.Conditions[i].Message != message {
			t.Errorf("conditions %v, want %s %s with %q", got.Status.Conditions, Condition, want, message)
		}
		if len(told.said) != events {
			t.Errorf("events %q, want %d", told.said, events)
		}
	}
	look(metav1.ConditionTrue, "No node is removed voluntarily until 2026-11-22T13:00:00Z: release day", 1)
	clk.Step(time.Hour)
	look(metav1.ConditionFalse, "Nodes may be removed voluntarily", 2)
	if want := "Thawed: Nodes may be removed voluntarily"; told.said[1] != want {
		t.Errorf("got %q, want %q", told.said[1], want)
	}
}

// TestPoolThatWasNeverFrozenIsLeftAlone: nothing is written on it.
func TestPoolThatWasNeverFrozenIsLeftAlone(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool).WithStatusSubresource(&karpv1.NodePool{}).Build()
	told := &recorder{}
	loop := &Loop{Kube: kube, Recorder: told, Clock: clocktesting.NewFakeClock(time.Now())}
	if err := loop.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := &karpv1.NodePool{}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(pool), got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Conditions) > 0 || len(told.said) > 0 {
		t.Errorf("conditions %v, events %q, want none", got.Status.Conditions, told.said)
	}
}

// TestEndOfFreezeIsToldWithoutAChange: and a change of a NodePool is told within two seconds.
func TestEndOfFreezeIsToldWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(time.Hour)
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
		kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool).WithStatusSubresource(&karpv1.NodePool{}).Build()
		var changes atomic.Uint64
		told := &recorder{}
		loop := &Loop{Kube: kube, Recorder: told, Clock: clock.RealClock{}, Changes: changes.Load}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- loop.Start(ctx) }()
		said := func(after time.Duration, events int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if len(told.said) != events {
				t.Errorf("%d events %q, want %d", len(told.said), told.said, events)
			}
		}
		said(time.Minute, 0)
		pool.Annotations = map[string]string{v1beta1.AnnotationFrozenUntil: until.Format(time.RFC3339), v1beta1.AnnotationFrozen: "release day"}
		if err := kube.Update(ctx, pool); err != nil {
			t.Fatal(err)
		}
		changes.Add(1)
		said(2*time.Second, 1)
		said(time.Until(until)+10*time.Second, 2)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
