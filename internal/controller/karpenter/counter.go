package karpenter

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	poolcounter "sigs.k8s.io/karpenter/pkg/controllers/nodepool/counter"
	utilscontroller "sigs.k8s.io/karpenter/pkg/utils/controller"
	nodepoolutils "sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/nodeautoprovision/nap/internal/controller/changes"
)

const (
	// countEvery is how often the nodes of a NodePool are counted, and countAgain how often
	// where no object has changed. mirrorLag is how much later than the cache Karpenter's
	// mirror of the cluster may be.
	countEvery, countAgain, mirrorLag = 5 * time.Second, time.Minute, 15 * time.Second
	// syncEvery is how often is asked whether the mirror has seen the whole cluster.
	syncEvery = time.Second
)

// poolCounter is Karpenter's controller that writes into the status of NodePools what their
// nodes have. Karpenter's own registration counts every 5 s whatever has happened, and before
// its mirror has seen the cluster it compares that with all NodeClaims and nodes once a second
// for each NodePool, which took a fifth of the processor time of a start with 1,000 nodes.
type poolCounter struct {
	cloud cloudprovider.CloudProvider
	// count counts the nodes of one NodePool, synced is whether the mirror has seen all, and
	// changes counts the changes of NodePools, NodeClaims and nodes.
	count   reconcile.Reconciler
	synced  func(context.Context) bool
	changes func() uint64
	clock   clock.PassiveClock

	mu sync.Mutex
	// complete is whether the mirror has once seen the whole cluster, asked when that was
	// asked last.
	complete bool
	asked    time.Time
	// seen is the last number of changes and since when it is that; counted is when the nodes
	// of a NodePool were last counted, by its name.
	seen    uint64
	since   time.Time
	counted map[string]time.Time
}

func (a *Assembly) poolCounter() *poolCounter {
	counter := poolcounter.NewController(a.kube, a.Cloud, a.Cluster.Cluster)
	return &poolCounter{
		cloud: a.Cloud, count: reconcile.AsReconciler(a.kube, counter), synced: a.Cluster.Synced, clock: a.clock, counted: map[string]time.Time{},
	}
}

// Register adds the controller to the manager, under Karpenter's name and with as many
// workers.
func (c *poolCounter) Register(ctx context.Context, m manager.Manager) error {
	objects, err := changes.Of(ctx, m.GetCache(), &v1.NodePool{}, &v1.NodeClaim{}, &corev1.Node{})
	if err != nil {
		return err
	}
	c.changes = objects.Count
	workers := utilscontroller.LinearScaleReconciles(utilscontroller.CPUCount(ctx), 10, 1000)
	return ctrl.NewControllerManagedBy(m).Named("nodepool.counter").
		For(&v1.NodePool{}, builder.WithPredicates(nodepoolutils.IsManagedPredicateFuncs(c.cloud), predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(c)
}

// Reconcile counts the nodes of one NodePool where that may tell something new.
func (c *poolCounter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if !c.isComplete(ctx) {
		return reconcile.Result{RequeueAfter: syncEvery}, nil
	}
	if !c.due(req.Name) {
		return reconcile.Result{RequeueAfter: countEvery}, nil
	}
	result, err := c.count.Reconcile(ctx, req)
	if err != nil || result.RequeueAfter != countEvery { // it has counted nothing
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.counted, req.Name)
	}
	return result, err
}

// isComplete reports whether the mirror has seen the whole cluster, which is asked for all
// NodePools together.
func (c *poolCounter) isComplete(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.complete && c.clock.Since(c.asked) >= syncEvery {
		c.complete = c.synced(ctx)
		c.asked = c.clock.Now()
	}
	return c.complete
}

// due reports whether the nodes of a NodePool are to be counted, and notes that they are.
func (c *poolCounter) due(pool string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if n := c.changes(); n != c.seen || c.since.IsZero() {
		c.seen, c.since = n, now
	}
	last, ever := c.counted[pool]
	if ever && now.Sub(last) < countAgain && last.Sub(c.since) >= mirrorLag {
		return false
	}
	c.counted[pool] = now
	return true
}
