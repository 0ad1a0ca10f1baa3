package provisioning

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// retryAfter is how often a pod that still waits, or a node that still leaves,
// comes again: what was planned for it may have failed.
const retryAfter = 10 * time.Second

// triggerWorkers is how many pods are looked at in parallel.
const triggerWorkers = 10

// triggers open batches. Their reconcilers run in goroutines of the manager; they
// share the batch and the expected pods, which are safe for concurrent use.
type triggers struct {
	kube    client.Reader
	cluster Cluster
	clock   clock.Clock
	batch   *Batch
	pods    *ExpectedPods
	// complete is told of owners that are about to create pods.
	complete *Completeness
	// endings are told of claims that end without a machine.
	endings *endings
	// nominations is nil when they are switched off.
	nominations *nominations
}

// register adds the triggers to a manager. They are:
//
//   - a pod that the scheduler found no place for, or has not looked at yet;
//   - a node whose disruption has begun, since its pods need a place;
//   - a node that takes long to be initialized, since its pods are told what it waits for:
//     those which are nominated for it bring no round about;
//   - a NodeClaim whose machine says that it does not become a node, or that ends
//     before it became one, and a NodePool that was
//     changed or became Ready, while pods wait: what could not be bought a moment
//     ago may be possible now.
func (t *triggers) register(mgr manager.Manager) error {
	nothing := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	for _, c := range []struct {
		name  string
		build func(*builder.Builder) *builder.Builder
		do    reconcile.Reconciler
	}{
		{"provisioner.trigger.pod", func(b *builder.Builder) *builder.Builder {
			return b.For(&corev1.Pod{}, builder.WithPredicates(podMayNeedNode()))
		}, reconcile.Func(t.podChanged)},
		{"provisioner.trigger.node", func(b *builder.Builder) *builder.Builder { return b.For(&corev1.Node{}) }, reconcile.Func(t.nodeChanged)},
		{"provisioner.trigger.nodeclaim", func(b *builder.Builder) *builder.Builder {
			return b.Watches(&karpv1.NodeClaim{}, handler.Funcs{UpdateFunc: t.claimChanged, DeleteFunc: t.claimGone})
		}, nothing},
		{"provisioner.trigger.nodepool", func(b *builder.Builder) *builder.Builder {
			return b.For(&karpv1.NodePool{}, builder.WithPredicates(poolMayBuyMore()))
		}, reconcile.Func(t.poolChanged)},
		{"provisioner.trigger.replicaset", t.owners(&appsv1.ReplicaSet{}), nothing},
		{"provisioner.trigger.replicationcontroller", t.owners(&corev1.ReplicationController{}), nothing},
		{"provisioner.trigger.statefulset", t.owners(&appsv1.StatefulSet{}), nothing},
		{"provisioner.trigger.job", t.owners(&batchv1.Job{}), nothing},
	} {
		b := ctrl.NewControllerManagedBy(mgr).Named(c.name).WithOptions(controller.Options{MaxConcurrentReconciles: triggerWorkers})
		if err := c.build(b).Complete(c.do); err != nil {
			return fmt.Errorf("registering controller %s: %w", c.name, err)
		}
	}
	return nil
}

// owners watches owners of one kind. They open no batch, but keep one open.
func (t *triggers) owners(kind client.Object) func(*builder.Builder) *builder.Builder {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return func(b *builder.Builder) *builder.Builder {
		return b.Watches(kind, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { t.complete.observe(e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { t.complete.observe(e.ObjectNew) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { t.complete.forget(e.Object) },
		})
	}
}

func (t *triggers) podChanged(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	// It is the cache's own: nothing here changes it.
	if err := t.kube.Get(ctx, req.NamespacedName, pod, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		t.pods.Forget(req.NamespacedName)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading pod %s: %w", req, err)
	}
	if t.nominations != nil {
		t.nominations.seen(pod)
	}
	owner := ownerOf(pod)
	// Before its pod is noted: an owner with a pod is not about to create its first one.
	news := News{Appeared: t.complete.Starting.appeared(owner)}
	first := !t.pods.Knows(pod)
	if podutils.IsTerminating(pod) && t.complete.wants(ctx, owner) {
		t.pods.Deleted(pod)
	}
	what := t.pods.Observe(pod)
	if what != New && first && t.complete.ordered(ctx, owner) {
		t.batch.Trigger(string(pod.UID), News{Owner: &owner, Tentative: true})
	}
	switch what {
	case NothingNew:
		if !podutils.IsProvisionable(pod) && !kube.Unjudged(pod) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	case New:
		// It says that its owner is at work.
		news.Owner, news.Tentative = &owner, kube.Unjudged(pod)
	default: // DueAgain: it tells nothing new of its owner
	}
	t.batch.Trigger(string(pod.UID), news)
	t.cluster.AckPods(pod)
	return reconcile.Result{RequeueAfter: retryAfter}, nil
}

func (t *triggers) nodeChanged(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := t.kube.Get(ctx, req.NamespacedName, node); apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading node %s: %w", req.Name, err)
	}
	if t.nominations != nil {
		t.nominations.observeNode(node)
	}
	if !disrupted(node) {
		return reconcile.Result{RequeueAfter: t.initializing(node)}, nil
	}
	// The taint comes before the replacement is bought. As an owner that loses pods the node
	// makes the batch wait for the idle time, by then the replacement is there.
	owner := Owner{Kind: nodeKind, Name: node.Name, UID: node.UID}
	t.pods.Leaves(owner)
	t.batch.Trigger(string(node.UID), News{Owner: &owner})
	return reconcile.Result{RequeueAfter: retryAfter}, nil
}

// initializing opens a batch while a node takes longer than fleet.InitializeWithin to be
// initialized. It returns after how long to look at the node again, 0 for never.
func (t *triggers) initializing(node *corev1.Node) time.Duration {
	if claimOf(node) == "" || node.Labels[karpv1.NodeInitializedLabelKey] == "true" || node.DeletionTimestamp != nil {
		return 0
	}
	if age := t.clock.Since(node.CreationTimestamp.Time); age < fleet.InitializeWithin {
		return fleet.InitializeWithin - age
	}
	t.batch.Trigger("initializing "+string(node.UID), News{})
	return fleet.InitializeWithin
}

// disrupted reports whether a node carries the taint with which a voluntary
// disruption begins.
func disrupted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&karpv1.DisruptedNoScheduleTaint) })
}

// claimChanged plans the pods of a machine again as soon as it says that it does not
// become a node, or its claim begins to end without a machine: it is gone a second later.
func (t *triggers) claimChanged(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	before, ok := e.ObjectOld.(*karpv1.NodeClaim)
	now, ok2 := e.ObjectNew.(*karpv1.NodeClaim)
	if !ok || !ok2 {
		return
	}
	switch {
	case !unbootable(before) && unbootable(now):
		t.withdraw(now.Name)
		t.fire(string(now.UID))
	case before.DeletionTimestamp.IsZero() && !now.DeletionTimestamp.IsZero() && now.Status.ProviderID == "":
		t.withdraw(now.Name)
		t.endings.add(now.Name)
		t.fire("ending " + string(now.UID))
	}
}

// unbootable reports whether the machine of a claim says that it does not become a node.
func unbootable(c *karpv1.NodeClaim) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(s status.Condition) bool {
		return s.Type == v1beta1.ConditionBooted && s.IsFalse()
	})
}

// withdraw takes back the nominations to the node of a claim that does not come.
func (t *triggers) withdraw(claim string) {
	if t.nominations != nil {
		t.nominations.claimGone(claim)
	}
}

func (t *triggers) claimGone(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	claim, ok := e.Object.(*karpv1.NodeClaim)
	if ok {
		t.withdraw(claim.Name)
	}
	if ok && !holds(claim.Status.Conditions, karpv1.ConditionTypeInitialized) {
		t.fire(string(claim.UID))
	}
}

func (t *triggers) poolChanged(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	t.fire("NodePool " + req.Name)
	return reconcile.Result{}, nil
}

// closes reports whether a batch of these owners has all that is to be planned.
func (t *triggers) closes(ctx context.Context, owners []Owner) bool {
	return t.endings.over() && t.complete.Complete(ctx, owners)
}

// fire plans at once while pods wait; key says what for.
func (t *triggers) fire(key string) {
	if t.pods.AnyWaiting() {
		t.batch.Trigger(key, News{Urgent: true})
	}
}

// watchScheduler triggers when the scheduler is done with new nodes and pods are
// left over, and when a pod did not get its place on a node that is ready, so that these
// need not wait for their reminders. It returns when ctx ends.
func (t *triggers) watchScheduler(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-periodic.After(t.clock, settleLook):
			if t.pods.TakeSettled() {
				t.batch.Trigger("settled", News{Urgent: true})
			}
			if t.pods.TakeMissed() {
				t.batch.Trigger("missed", News{Urgent: true})
			}
		}
	}
}

// podMayNeedNode passes all changes of pods but those of one that is bound, and neither ends nor
// begins to be deleted by it: from its start to being ready, nothing of it is planned.
func podMayNeedNode() predicate.Predicate {
	over := func(p *corev1.Pod) bool { return podutils.IsTerminal(p) || podutils.IsTerminating(p) }
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*corev1.Pod)
		now, ok2 := e.ObjectNew.(*corev1.Pod)
		return !ok1 || !ok2 || before.UID != now.UID || before.Spec.NodeName == "" || now.Spec.NodeName == "" || over(before) != over(now)
	}}
}

// poolMayBuyMore passes changes of the spec and of what nodes may cost, and a pool that
// becomes Ready.
func poolMayBuyMore() predicate.Predicate {
	ready := func(o *karpv1.NodePool) bool { return holds(o.Status.Conditions, status.ConditionReady) }
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*karpv1.NodePool)
			now, ok2 := e.ObjectNew.(*karpv1.NodePool)
			return ok && ok2 && (before.Generation != now.Generation || costsChanged(before, now) || !ready(before) && ready(now))
		},
	}
}

// holds reports whether a condition is true. The object of an event is shared with all that
// watch, and StatusConditions would write the conditions that are missing into it.
func holds(conditions []status.Condition, kind string) bool {
	return slices.ContainsFunc(conditions, func(c status.Condition) bool { return c.Type == kind && c.IsTrue() })
}
