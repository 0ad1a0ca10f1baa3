package provisioning

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ofSet is a pod of ReplicaSet web; change may be nil.
func ofSet(name string, change func(*corev1.Pod)) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web", Controller: &yes}},
	}}
	if change != nil {
		change(pod)
	}
	return pod
}

func bound(p *corev1.Pod) { p.Spec.NodeName = "node" }

func ended(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodSucceeded }

// scaledDown is a pod that its owner has deleted, takenAway one that something else has.
func scaledDown(p *corev1.Pod) {
	now := metav1.Now()
	p.Spec.NodeName, p.DeletionTimestamp = "node", &now
}

func takenAway(p *corev1.Pod) {
	scaledDown(p)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
}

// failed is a pod that has ended by itself, shutDown one whose node goes.
func failed(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node", corev1.PodFailed }

func shutDown(p *corev1.Pod) {
	failed(p)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet"}}
}

func losingWorld(wants int32) (*ExpectedPods, *Completeness) {
	pods := NewExpectedPods(clock.RealClock{}, time.Second)
	set := replicaSet("web", wants)
	set.UID = "web"
	kube := fake.NewClientBuilder().WithObjects(set).Build()
	return pods, &Completeness{Kube: kube, Pods: pods, Announces: func(string) bool { return true }, Announced: announcesAll}
}

// comes lets a new pod of the set come that has no place.
func comes(pods *ExpectedPods, b *Batch, i int) {
	next := ofSet(fmt.Sprint("new-", i), unschedulable)
	owner := ownerOf(next)
	pods.Observe(next)
	b.Trigger(next.Name, News{Owner: &owner})
}

// The pods of a node that is drained go one after the other, and each is replaced at once. One
// plan for all that is lost buys less than one for each.
func TestDrainedNodeIsOneBatch(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		const n = 4
		pods, c := losingWorld(n)
		for i := range n {
			pods.Observe(ofSet(fmt.Sprint("old-", i), bound))
		}
		for i := range n {
			time.AfterFunc(time.Duration(i)*200*time.Millisecond, func() {
				pods.Observe(ofSet(fmt.Sprint("old-", i), takenAway))
				comes(pods, b, i)
			})
		}
		if got := closed(ctx, t, b, c.Complete); !strings.HasSuffix(got, " after 1.6s") {
			t.Errorf("the batch is %s, want it a second after the last pod", got)
		}
	})
}

// A node that leaves holds a batch for the idle time, however long the pods of others come.
func TestLeavingNodeHoldsBatchForIdleTime(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		pods, c := losingWorld(40)
		node := Owner{Kind: nodeKind, Name: "node", UID: "node"}
		pods.Leaves(node)
		b.Trigger("node", News{Owner: &node})
		for i := range 40 {
			time.AfterFunc(time.Duration(i)*50*time.Millisecond, func() {
				comes(pods, b, i)
			})
		}
		if got := closed(ctx, t, b, c.Complete); !strings.HasSuffix(got, " after 1s") {
			t.Errorf("the batch is %s, want it a second after the node's taint", got)
		}
	})
}

// An owner that loses pods may lose the next one for a second. What it deletes itself, what has
// ended and what never ran is no loss.
func TestLossIsAPodThatWasTakenAway(t *testing.T) {
	forget := func(p *ExpectedPods, name string) { p.Forget(client.ObjectKey{Namespace: "default", Name: name}) }
	for name, c := range map[string]struct {
		before func(*corev1.Pod)
		goes   func(*ExpectedPods)
		want   bool
		stays  int32 // how many pods the owner has beside the new one
	}{
		"evicted":                 {bound, func(p *ExpectedPods) { p.Observe(ofSet("old", takenAway)) }, true, 0},
		"vanished with its node":  {bound, func(p *ExpectedPods) { forget(p, "old") }, true, 0},
		"evicted, and gone since": {takenAway, func(p *ExpectedPods) { forget(p, "old") }, false, 0},
		"ended by its kubelet":    {bound, func(p *ExpectedPods) { p.Observe(ofSet("old", shutDown)) }, true, 0},
		"failed by itself":        {bound, func(p *ExpectedPods) { p.Observe(ofSet("old", failed)) }, false, 0},
		"scaled down":             {bound, func(p *ExpectedPods) { p.Observe(ofSet("old", scaledDown)) }, false, 0},
		"scaled down and gone": {bound, func(p *ExpectedPods) {
			p.Observe(ofSet("old", scaledDown))
			forget(p, "old")
		}, false, 0},
		"ended and deleted": {ended, func(p *ExpectedPods) { forget(p, "old") }, false, 0},
		"waited":            {unschedulable, func(p *ExpectedPods) { forget(p, "old") }, false, 0},
		"none":              {before: bound, goes: func(*ExpectedPods) {}, stays: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, completeness := losingWorld(1 + c.stays)
				pods.Observe(ofSet("old", c.before))
				c.goes(pods)
				next := ofSet("new", unschedulable)
				pods.Observe(next)
				owners := []Owner{ownerOf(next)}
				if got := completeness.Complete(t.Context(), owners); got == c.want {
					t.Errorf("complete is %v at once", got)
				}
				time.Sleep(time.Second)
				if !completeness.Complete(t.Context(), owners) {
					t.Error("it is not complete after a second")
				}
			})
		})
	}
}

// A pod that is deleted is lost where its owner wants as many as it has; where it wants fewer, it
// has deleted the pod itself.
func TestDeletedPodThatIsWantedIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		wants int32
		want  bool
	}{"wanted": {2, true}, "scaled down": {1, false}, "scaled to none": {0, false}} {
		synctest.Test(t, func(t *testing.T) {
			kept := func(p *corev1.Pod) { p.Spec.NodeName, p.Finalizers = "node", []string{"example.com/kept"} }
			pods := []*corev1.Pod{ofSet("a", kept), ofSet("b", kept)}
			set := replicaSet("web", c.wants)
			set.UID = "web"
			w := newWorld(t, nodePool(), set, pods[0], pods[1])
			w.loop.pods.losses.within = time.Second
			for _, pod := range pods {
				w.loop.pods.Observe(pod)
			}
			if err := w.kube.Delete(t.Context(), pods[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := w.loop.triggers.podChanged(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pods[0])}); err != nil {
				t.Fatal(err)
			}
			if got := w.loop.pods.Losing(ownerOf(pods[0])); got != c.want {
				t.Errorf("%s: losing is %v", name, got)
			}
		})
	}
}

func TestLossesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLosses(clock.RealClock{}, time.Second)
		for i := range 1000 {
			l.add(Owner{Name: fmt.Sprint(i)})
			time.Sleep(10 * time.Millisecond)
		}
		if n := len(l.at); n > 200 {
			t.Errorf("%d owners are kept, want those of two seconds", n)
		}
	})
}
