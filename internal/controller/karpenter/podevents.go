package karpenter

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
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
	// recent is when events were noted, by NodeClaim: the cache learns of it a little later,
	// and pods come and go together. One goroutine uses it. Times older than notedFor tell
	// nothing and are forgotten at pruned plus notedFor.
	recent map[string]time.Time
	pruned time.Time
}

func (a *Assembly) podEvents() onChange {
	c := claimpodevents.NewController(a.clock, a.kube, a.Cloud)
	events := &podEvents{kube: a.kube, clock: a.clock, notes: reconcile.AsReconciler(a.kube, c), recent: map[string]time.Time{}}
	return onChange{c.Name(), &corev1.Pod{}, 1, events, []predicate.Predicate{comesOrGoes()}}
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

// Reconcile notes what has happened to a pod unless the NodeClaim knows it. On one that is being
// deleted nothing is noted: there is nothing left to consolidate.
func (e *podEvents) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	err := e.kube.Get(ctx, req.NamespacedName, &pod, client.UnsafeDisableDeepCopy)
	if err != nil || pod.Spec.NodeName == "" || podutils.IsOwnedByDaemonSet(&pod) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	claim, err := e.claim(ctx, pod.Spec.NodeName)
	if claim == nil || claim.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	noted, now := claim.Status.LastPodEventTime.Time, e.clock.Now()
	if now.Sub(noted) < notedFor || now.Sub(e.recent[claim.Name]) < notedFor {
		return reconcile.Result{}, nil
	}
	if at := lastOf(&pod); now.Sub(at) > skew && !at.After(noted) {
		return reconcile.Result{}, nil
	}
	result, err := e.notes.Reconcile(ctx, req)
	if err == nil {
		e.remember(claim.Name, now)
	}
	return result, err
}

// remember keeps when an event was noted on a NodeClaim.
func (e *podEvents) remember(claim string, now time.Time) {
	if now.Sub(e.pruned) >= notedFor {
		maps.DeleteFunc(e.recent, func(_ string, at time.Time) bool { return now.Sub(at) >= notedFor })
		e.pruned = now
	}
	e.recent[claim] = now
}

// claim is the NodeClaim of a node, as the cache has it, which is not to be changed; nil if there
// is none, or more than one.
func (e *podEvents) claim(ctx context.Context, name string) (*v1.NodeClaim, error) {
	var node corev1.Node
	if err := e.kube.Get(ctx, types.NamespacedName{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var claims v1.NodeClaimList
	err := e.kube.List(ctx, &claims, nodeclaimutils.ForProviderID(node.Spec.ProviderID), client.UnsafeDisableDeepCopy)
	if err != nil || len(claims.Items) != 1 {
		return nil, err
	}
	return &claims.Items[0], nil
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
