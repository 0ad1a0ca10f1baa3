package mode

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// inventory is what the NodeClaims and NodePools tell, after so many changes of them.
type inventory struct {
	changes      uint64
	nodes, pools int32
	// blockers is as in Blockers, upgraded the condition of how many nodes are old.
	blockers string
	upgraded metav1.Condition
	// oldest is when the first NodeClaim of those that are left was created; nil without any.
	oldest *metav1.Time
}

// take returns the inventory of now: the last one, where nothing has changed since.
func (k *Keeper) take(ctx context.Context) (*inventory, error) {
	var changes uint64
	if k.Changes != nil {
		changes = k.Changes() // before the objects are read, so that a change in between is seen at the next look
		if k.inventory != nil && k.inventory.changes == changes {
			return k.inventory, nil
		}
	}
	var claims karpv1.NodeClaimList
	var pools karpv1.NodePoolList
	for _, list := range []client.ObjectList{&claims, &pools} {
		// The lists are only read here, several thousand objects.
		if err := k.Kube.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing what blocks mode Manual: %w", err)
		}
	}
	now := &inventory{
		changes: changes, nodes: int32(len(claims.Items)), pools: int32(len(pools.Items)),
		blockers: Blockers(claims.Items, pools.Items), upgraded: upgraded(claims.Items),
	}
	for i := range claims.Items {
		if made := claims.Items[i].CreationTimestamp; now.oldest == nil || made.Before(now.oldest) {
			now.oldest = &made
		}
	}
	k.inventory = now
	return now, nil
}
