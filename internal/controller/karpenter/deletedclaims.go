package karpenter

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// deletedClaims keeps a machine from becoming a node that takes pods when its NodeClaim was deleted
// while the machine was made.
//
// Karpenter's lifecycle controller goes from the launch to the registration with the NodeClaim that it
// has read before the launch (v1.15.0). Where the cloud says that there is a machine only when it has
// booted, its node is there by then. Pods then go to a node that is drained at once, and are evicted
// again. Held back, the node keeps the taint karpenter.sh/unregistered, and the controller's next
// look at the NodeClaim deletes the machine.
type deletedClaims struct{ kube client.Reader }

// Name is that of [cloudprovider.NodeLifecycleHook].
func (deletedClaims) Name() string { return "nodeclaim.deleted" }

// Registered holds a NodeClaim back that the cache knows to be deleted.
func (d deletedClaims) Registered(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.NodeLifecycleHookResult, error) {
	var now v1.NodeClaim
	err := d.kube.Get(ctx, client.ObjectKeyFromObject(claim), &now, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return cloudprovider.NodeLifecycleHookResult{}, fmt.Errorf("reading whether NodeClaim %s is deleted: %w", claim.Name, err)
	}
	if apierrors.IsNotFound(err) || !now.DeletionTimestamp.IsZero() {
		return cloudprovider.NodeLifecycleHookResult{RequeueAfter: time.Second}, nil
	}
	return cloudprovider.NodeLifecycleHookResult{}, nil
}
