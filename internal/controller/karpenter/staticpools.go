package karpenter

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	staticprovisioning "sigs.k8s.io/karpenter/pkg/controllers/static/provisioning"
)

// staticController is Karpenter's controller that makes the NodeClaims of static NodePools. It looks
// at a NodePool only once Karpenter's mirror of the cluster knows which of its NodeClaims are deleted.
//
// The deletion of a NodeClaim starts this controller and the one that feeds the mirror at the same
// moment (v1.15.0). Where this one is first, it counts the NodeClaim as one that stays and sleeps for
// a minute, or until the machine is gone: the replacement then comes after the drain, however long
// that takes.
type staticController struct {
	*staticprovisioning.Controller
	cluster Cluster
}

// Register adds the controller to the manager, as Karpenter does.
func (c staticController) Register(ctx context.Context, m manager.Manager) error {
	return c.Controller.Register(ctx, clientManager{m, mirroredDeletions{m.GetClient(), c.cluster}})
}

// mirroredWithin is how long a deletion is waited for that the cache knows of and the mirror does not,
// mirroredEvery how often it is looked for.
const mirroredWithin, mirroredEvery = 5 * time.Second, 20 * time.Millisecond

// mirroredDeletions reads a NodePool when the mirror knows which of its NodeClaims are deleted.
type mirroredDeletions struct {
	client.Client
	cluster Cluster
}

// Get is that of [client.Client].
func (c mirroredDeletions) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*v1.NodePool); is {
		if err := c.await(ctx, key.Name); err != nil {
			return err
		}
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// await returns when the mirror knows the deletions of a NodePool's NodeClaims, or does not learn of
// them in time.
func (c mirroredDeletions) await(ctx context.Context, pool string) error {
	var claims v1.NodeClaimList
	if err := c.List(ctx, &claims, client.MatchingLabels{v1.NodePoolLabelKey: pool}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the NodeClaims of NodePool %s: %w", pool, err)
	}
	deleted := map[string]bool{}
	for i := range claims.Items {
		if !claims.Items[i].DeletionTimestamp.IsZero() {
			deleted[claims.Items[i].Name] = true
		}
	}
	if len(deleted) == 0 {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, mirroredEvery, mirroredWithin, true, func(context.Context) (bool, error) {
		return c.cluster.knowsDeleted(deleted), nil
	})
	if wait.Interrupted(err) { // its time is over, or that of ctx
		return ctx.Err()
	}
	return err
}

// knowsDeleted reports whether the mirror has none of these claims as one that stays. One without a
// machine it never has.
func (c Cluster) knowsDeleted(claims map[string]bool) bool {
	for n := range c.Nodes() {
		if n.NodeClaim != nil && claims[n.NodeClaim.Name] && !n.MarkedForDeletion() {
			return false
		}
	}
	return true
}
