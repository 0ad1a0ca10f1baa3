package karpenter

import (
	"context"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state/informer"
	utilscontroller "sigs.k8s.io/karpenter/pkg/utils/controller"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
)

// statusWorkers is how many objects are looked at for conditions at once, as in Karpenter.
const statusWorkers = 10

// Karpenter's informers look at every object once a minute, whatever has happened. That
// mends what a node did not say of itself when it was young, such as the limits of its
// volume drivers; later the watches tell all there is to know.
const (
	// lookAgain is about the time between two looks at what has not changed. The 10,000 pods of
	// 1,000 nodes took a sixth of the processor time at rest when it was 15 minutes.
	lookAgain = time.Hour
	// poolAgain is the time until the NodePool of an object is asked for again that was gone.
	poolAgain = 15 * time.Minute
	// young is the age until which nodes are looked at as often as Karpenter does.
	young = 10 * time.Minute
)

// onChange runs a reconciler of Karpenter's whenever an object changes, with the name and as
// many workers as Karpenter's own registration gives it.
type onChange struct {
	name       string
	of         client.Object
	workers    int
	reconciler reconcile.Reconciler
	watched    []predicate.Predicate
}

// Register adds the controller to the manager.
func (c onChange) Register(_ context.Context, m manager.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named(c.name).For(c.of, builder.WithPredicates(c.watched...)).
		WithOptions(controller.Options{MaxConcurrentReconciles: c.workers}).Complete(c.reconciler)
}

// again changes when a reconciler is to look again at an object that it has looked at
// without an error; it is not asked where the reconciler does not want to.
func again(r reconcile.Reconciler, when func(context.Context, reconcile.Request, time.Duration) time.Duration) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if err == nil && result.RequeueAfter > 0 {
			result.RequeueAfter = when(ctx, req, result.RequeueAfter)
		}
		return result, err
	})
}

// noRounds looks at an object only when it changes.
func noRounds(r reconcile.Reconciler) reconcile.Reconciler {
	return again(r, func(context.Context, reconcile.Request, time.Duration) time.Duration { return 0 })
}

// seldom looks at an object again after about lookAgain. Objects that were all seen at the
// start of the process do not all come at once: their names spread them.
func seldom(_ context.Context, req reconcile.Request, _ time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(req.String())) // never fails
	return lookAgain/2 + time.Duration(h.Sum64()%uint64(lookAgain))
}

// seldomWhenGrown is seldom for nodes that are not young.
func (a *Assembly) seldomWhenGrown(ctx context.Context, req reconcile.Request, wanted time.Duration) time.Duration {
	var node corev1.Node
	err := a.kube.Get(ctx, req.NamespacedName, &node, client.UnsafeDisableDeepCopy)
	if err != nil || a.clock.Since(node.CreationTimestamp.Time) < young {
		return wanted
	}
	return seldom(ctx, req, wanted)
}

// withoutPool takes it for nothing to count where an object of the cluster that a reconciler asks
// for is gone: a NodePool that is deleted goes before its NodeClaims do, and Karpenter's mirror
// of costs asks for the NodePool of each.
func withoutPool(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if apierrors.IsNotFound(err) {
			return reconcile.Result{RequeueAfter: poolAgain}, nil
		}
		return result, err
	})
}

// mirrors feed pods, nodes and NodeClaims to Karpenter's mirror of the cluster.
func (a *Assembly) mirrors(ctx context.Context) []named {
	workers := utilscontroller.LinearScaleReconciles(utilscontroller.CPUCount(ctx), 10, 3000) // as Karpenter's
	pods := informer.NewPodController(a.kube, a.Cluster.Cluster)
	nodes := informer.NewNodeController(a.kube, a.Cluster.Cluster)
	claims := informer.NewNodeClaimController(a.kube, a.Cloud, a.Cluster.Cluster, a.cost)
	return []named{
		{pods.Name(), onChange{pods.Name(), &corev1.Pod{}, workers, again(pods, seldom), []predicate.Predicate{mirroredPods()}}},
		{nodes.Name(), onChange{nodes.Name(), &corev1.Node{}, workers, again(nodes, a.seldomWhenGrown), nil}},
		{claims.Name(), onChange{claims.Name(), &v1.NodeClaim{}, workers, again(withoutPool(claims), seldom),
			[]predicate.Predicate{nodeclaimutils.IsManagedPredicateFuncs(a.Cloud)}}},
	}
}
