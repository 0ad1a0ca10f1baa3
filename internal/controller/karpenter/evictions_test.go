package karpenter

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/karpenter/pkg/events"
)

// Karpenter's queue asks for the eviction of a pod until that is granted, and not again while the
// cache still shows the pod as it was.
func TestPodIsEvictedOnce(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	asked := map[types.UID]int{}
	answers := []error{apierrors.NewTooManyRequests("its budget is used up", 1), nil, nil}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: func(_ context.Context, _ client.Client, sub string,
			pod, _ client.Object, _ ...client.SubResourceCreateOption) error {
			if sub != "eviction" {
				t.Errorf("created %s of a pod", sub)
			}
			asked[pod.GetUID()]++
			return answers[min(asked[pod.GetUID()], len(answers))-1]
		}}).Build()
	queue := newEvictions(kube, clk, events.NewRecorder(record.NewFakeRecorder(100)))
	drain := func(uid types.UID) {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid}, Spec: corev1.PodSpec{NodeName: "node"}}
		queue.Add(pod)
		if _, err := queue.Reconcile(t.Context(), pod); err != nil {
			t.Error(err)
		}
		if waits, want := queue.Has(pod), asked[uid] < 2; waits != want {
			t.Errorf("after %d requests the pod is in the queue: %v, want %v", asked[uid], waits, want)
		}
	}
	var counts []int
	for range 4 { // its budget, its eviction, and twice the cache as it was
		drain("1")
		counts = append(counts, asked["1"])
	}
	if want := []int{1, 2, 2, 2}; !slices.Equal(counts, want) {
		t.Errorf("evictions asked for: %v, want %v", counts, want)
	}
	drain("2") // a pod of the same name that came after it is another one
	if asked["2"] != 1 {
		t.Errorf("%d evictions of its successor were asked for, want 1", asked["2"])
	}
	clk.Step(evictedFor) // an API server that was restored from a backup has the pod again
	if drain("1"); asked["1"] != 3 {
		t.Errorf("%d evictions after a long time, want one more", asked["1"])
	}
}
