package karpenter

import (
	"context"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// ofPools is a cloud provider whose node classes are of a kind that every scheme here knows.
type ofPools struct{ cloudprovider.CloudProvider }

func (ofPools) GetSupportedNodeClasses() []status.Object { return []status.Object{&v1.NodePool{}} }

// A controller that starts sees all pods for the first time. That is no event on their nodes,
// unless they came, ended or were deleted after what the NodeClaim has noted: consolidateAfter
// goes on counting over a restart.
func TestRestartIsNoPodEvent(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	bound := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(d)}}
		}
	}
	for name, c := range map[string]struct {
		noted time.Duration // before now; 0 means never
		pod   func(*corev1.Pod)
		want  bool
	}{
		"was there":                       {time.Hour, bound(2 * time.Hour), false},
		"noted in the same second":        {time.Hour, bound(time.Hour), false},
		"came while no controller ran":    {time.Hour, bound(30 * time.Minute), true},
		"nothing was noted":               {0, bound(2 * time.Hour), true},
		"comes just now":                  {15 * time.Second, bound(20 * time.Second), true}, // clocks differ
		"the last was just noted":         {9 * time.Second, bound(time.Second), false},
		"is not bound":                    {time.Hour, func(p *corev1.Pod) { p.Spec.NodeName = "" }, false},
		"ended while no controller ran":   {time.Hour, func(p *corev1.Pod) { bound(10 * time.Minute)(p); p.Status.Phase = corev1.PodSucceeded }, true},
		"was deleted long ago, and stays": {time.Hour, deleted(ago(90*time.Minute), 600), false},
		"deleted while no controller ran": {time.Hour, deleted(ago(20*time.Minute), 600), true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", CreationTimestamp: ago(3 * time.Hour)},
				Spec: corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			c.pod(pod)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Spec: corev1.NodeSpec{ProviderID: "azure:///node-a"}}
			class := object.GVK(ofPools{}.GetSupportedNodeClasses()[0])
			claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-a"}, Spec: v1.NodeClaimSpec{
				NodeClassRef: &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"},
			}, Status: v1.NodeClaimStatus{ProviderID: "azure:///node-a"}}
			if c.noted > 0 {
				claim.Status.LastPodEventTime = ago(c.noted)
			}
			b := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod, node, claim).WithStatusSubresource(&v1.NodeClaim{})
			for _, ix := range Indexes() {
				b = b.WithIndex(ix.Object, ix.Field, ix.Extract)
			}
			kube := b.Build()
			a := &Assembly{kube: kube, clock: clocktesting.NewFakeClock(now), Cloud: ofPools{}}
			if _, err := a.podEvents().reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil {
				t.Fatal(err)
			}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			if got := claim.Status.LastPodEventTime.Time.Equal(now); got != c.want {
				t.Errorf("noted is %s, now is %s; want it noted: %t", claim.Status.LastPodEventTime, now, c.want)
			}
		})
	}
}

// Pods that come or go together are one event, also before the cache knows that it is noted, and
// a NodeClaim that is being deleted is left alone.
func TestPodsThatComeTogetherAreOneEvent(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(now)
	class := object.GVK(ofPools{}.GetSupportedNodeClasses()[0])
	written := 0
	b := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(&v1.NodeClaim{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			written++ // the cache does not learn of it
			return nil
		}})
	for _, ix := range Indexes() {
		b = b.WithIndex(ix.Object, ix.Field, ix.Extract)
	}
	for _, name := range []string{"a", "leaving"} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeClaimSpec{
			NodeClassRef: &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"},
		}, Status: v1.NodeClaimStatus{ProviderID: "azure:///" + name}}
		if name == "leaving" {
			claim.DeletionTimestamp, claim.Finalizers = &metav1.Time{Time: now}, []string{v1.TerminationFinalizer}
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "azure:///" + name}}
		b = b.WithObjects(claim, node, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "1-" + name, CreationTimestamp: metav1.NewTime(now)}, Spec: corev1.PodSpec{NodeName: name}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "2-" + name, CreationTimestamp: metav1.NewTime(now)}, Spec: corev1.PodSpec{NodeName: name}})
	}
	daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "0-a", CreationTimestamp: metav1.NewTime(now), OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d"},
	}}, Spec: corev1.PodSpec{NodeName: "a"}}
	kube := b.WithObjects(daemon).Build()
	events := (&Assembly{kube: kube, clock: clock, Cloud: ofPools{}}).podEvents().reconciler
	for _, step := range []struct {
		pod  string
		wait time.Duration
		want int
	}{
		{"0-a", 0, 0}, {"1-a", 0, 1}, {"2-a", time.Second, 1}, {"1-a", notedFor, 2}, {"1-leaving", 0, 2}, {"2-a", 0, 2},
	} {
		clock.Step(step.wait)
		if _, err := events.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: step.pod}}); err != nil {
			t.Fatal(err)
		}
		if written != step.want {
			t.Errorf("after %s: %d written, want %d", step.pod, written, step.want)
		}
	}
	if n := len(events.(*podEvents).recent); n != 1 {
		t.Errorf("%d times are kept, want the last of one NodeClaim", n)
	}
}

// deleted is a pod whose deletion was asked for at a time, with so many seconds of grace.
func deleted(at metav1.Time, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		end := metav1.NewTime(at.Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Finalizers = &end, &grace, []string{"example.com/keep"}
	}
}

// Pods that are bound, end, or are deleted are looked at; other changes are not.
func TestPodsThatComeOrGoAreLookedAt(t *testing.T) {
	unbound, bound := &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-a"}}
	ended, leaving := bound.DeepCopy(), bound.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"is bound": {unbound, bound, true}, "ends": {bound, ended, true}, "is deleted": {bound, leaving, true},
		"waits on": {unbound, unbound, false}, "runs on": {bound, bound, false}, "leaves on": {leaving, leaving, false},
	} {
		if got := comesOrGoes().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
			t.Errorf("a pod that %s is looked at: %t", name, got)
		}
	}
	if p := comesOrGoes(); !p.Create(event.CreateEvent{Object: bound}) || p.Delete(event.DeleteEvent{Object: bound}) {
		t.Error("a new pod is not looked at, or one that is gone is")
	}
}
