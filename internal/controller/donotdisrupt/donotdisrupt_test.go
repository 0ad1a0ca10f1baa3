package donotdisrupt

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
)

type heard []events.Event

func (h *heard) Publish(es ...events.Event) { *h = append(*h, es...) }

func TestWrongValueIsToldWhenWritten(t *testing.T) {
	for value, warned := range map[string]bool{
		"": false, "true": false, "15m": false, "1h30m": false, "yes": true, "True": true, "15": true, "-5m": true, "0s": true,
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{}}}
		if value != "" {
			pod.Annotations[karpv1.DoNotDisruptAnnotationKey] = value
		}
		if noticed := written().Create(event.CreateEvent{Object: pod}); noticed != (value != "") {
			t.Errorf("%q: looked at: %v", value, noticed)
		}
		var h heard
		if _, err := New(nil, clock.RealClock{}, &h).Reconcile(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, e := range h {
			if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, value) {
				told++
			}
		}
		if (told == 1) != warned {
			t.Errorf("%q: events %v, want a warning: %v", value, h, warned)
		}
	}
}

func TestOnlyChangesOfValueAreLookedAt(t *testing.T) {
	pod := func(value string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{karpv1.DoNotDisruptAnnotationKey: value}}}
	}
	for _, c := range []struct {
		before, after string
		want          bool
	}{{"true", "true", false}, {"true", "yes", true}, {"", "yes", true}, {"yes", "", true}} {
		if got := written().Update(event.UpdateEvent{ObjectOld: pod(c.before), ObjectNew: pod(c.after)}); got != c.want {
			t.Errorf("from %q to %q: looked at: %v, want %v", c.before, c.after, got, c.want)
		}
	}
}

func TestEndOfProtectionIsTold(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{karpv1.DoNotDisruptAnnotationKey: "1h"}}}
	var h heard
	c := New(nil, clk, &h)
	for _, step := range []struct {
		change func()
		again  time.Duration
		reason string
	}{
		{func() {}, time.Minute, ""},
		{func() { pod.Status.StartTime = &metav1.Time{Time: clk.Now().Add(-20 * time.Minute)} }, 40 * time.Minute, "DoNotDisruptUntil"},
		{func() { clk.Step(40 * time.Minute) }, 0, "DoNotDisruptGracePeriodElapsed"},
	} {
		h = nil
		step.change()
		got, err := c.Reconcile(t.Context(), pod)
		if err != nil || got.RequeueAfter != step.again {
			t.Errorf("again after %s, %v; want %s", got.RequeueAfter, err, step.again)
		}
		if told := len(h) == 1 && h[0].Reason == step.reason; told != (step.reason != "") {
			t.Errorf("events %v, want %q", h, step.reason)
		}
	}
}
