package karpenter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	claimpodevents "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/podevents"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// skew is how far the clocks of scheduler, API server and controller may be apart: an event
// that is younger is taken for new whatever they say.
const skew = time.Minute

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
	if err := e.kube.Get(ctx, req.NamespacedName, &pod); err != nil || pod.Spec.NodeName == "" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if at := lastOf(&pod); e.clock.Since(at) > skew && !at.After(e.noted(ctx, pod.Spec.NodeName)) {
		return reconcile.Result{}, nil
	}
	return e.notes.Reconcile(ctx, req)
}

// noted is the time that the NodeClaim of a node has noted, zero if it has none or there is
// none.
func (e podEvents) noted(ctx context.Context, name string) time.Time {
	var node corev1.Node
	if err := e.kube.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
		return time.Time{}
	}
	claim, err := nodeutils.NodeClaimForNode(ctx, e.kube, &node)
	if err != nil {
		return time.Time{}
	}
	return claim.Status.LastPodEventTime.Time
}

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
