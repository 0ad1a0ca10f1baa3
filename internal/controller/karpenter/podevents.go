package karpenter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	claimpodevents "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/podevents"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// skew is how far the clocks of scheduler, API server and controller may be apart: an event
// that is younger is taken for new whatever they say.
const skew = time.Minute

// notedFor is how long Karpenter's controller leaves a NodeClaim alone on which it has noted an
// event (dedupeTimeout in v1.15.0).
const notedFor = 10 * time.Second

// podEvents is Karpenter's controller that notes on NodeClaims when pods have come or gone,
// from which consolidateAfter counts. Karpenter's takes every pod that it sees for one that
// has just come: a controller that starts writes every NodeClaim, once for each of its pods,
// and consolidateAfter begins again on all nodes. Here a pod that came and stayed before the
// time that is noted already changes nothing.
type podEvents struct {
	kube  client.Client
	clock clock.Clock
	notes reconcile.Reconciler
}

func (a *Assembly) podEvents() onChange {
	c := claimpodevents.NewController(a.clock, a.kube, a.Cloud)
	return onChange{
		c.Name(), &corev1.Pod{}, 1, podEvents{a.kube, a.clock, reconcile.AsReconciler(a.kube, c)}, []predicate.Predicate{comesOrGoes()},
	}
}

// comesOrGoes passes changes in which a pod was bound, ended, or began to be deleted, and
// all pods that are seen for the first time.
func comesOrGoes() predicate.Predicate {
	stage := func(o client.Object) (bound, ended, leaving bool) {
		p, ok := o.(*corev1.Pod)
		if !ok {
			return false, false, false
		}
		return p.Spec.NodeName != "", podutils.IsTerminal(p), podutils.IsTerminating(p)
	}
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			wasBound, hadEnded, wasLeaving := stage(e.ObjectOld)
			bound, ended, leaving := stage(e.ObjectNew)
			return bound && (!wasBound || !hadEnded && ended || !wasLeaving && leaving)
		},
	}
}

// Reconcile notes what has happened to a pod unless the NodeClaim knows it.
func (e podEvents) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := e.kube.Get(ctx, req.NamespacedName, &pod, shared()); err != nil || pod.Spec.NodeName == "" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	noted := e.noted(ctx, pod.Spec.NodeName)
	if e.clock.Since(noted) < notedFor {
		return reconcile.Result{}, nil // Karpenter's would read it all again, and change nothing
	}
	if at := lastOf(&pod); e.clock.Since(at) > skew && !at.After(noted) {
		return reconcile.Result{}, nil
	}
	return e.notes.Reconcile(ctx, req)
}

// noted is the time that the NodeClaim of a node has noted, zero if it has none or there is
// none.
func (e podEvents) noted(ctx context.Context, name string) time.Time {
	var node corev1.Node
	if err := e.kube.Get(ctx, types.NamespacedName{Name: name}, &node, shared()); err != nil {
		return time.Time{}
	}
	var claims v1.NodeClaimList
	err := e.kube.List(ctx, &claims, nodeclaimutils.ForProviderID(node.Spec.ProviderID), client.UnsafeDisableDeepCopy)
	if err != nil || len(claims.Items) != 1 {
		return time.Time{}
	}
	return claims.Items[0].Status.LastPodEventTime.Time
}

// shared reads the cache's own object instead of a copy: who reads so changes nothing of it.
func shared() *client.GetOptions { return &client.GetOptions{UnsafeDisableDeepCopy: ptr.To(true)} }

// lastOf is when a pod was bound, ended, or began to be deleted, whichever was last. A
// condition of it that changed otherwise may make it later, never earlier.
func lastOf(pod *corev1.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	if d := pod.DeletionTimestamp; d != nil {
		grace := int64(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		if asked := d.Add(-time.Duration(grace) * time.Second); asked.After(last) {
			last = asked
		}
	}
	return last
}
