package karpenter

import (
	"context"
	"fmt"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"
)

// RegistrationFailed counts against the NodePool of a claim that its machine did not
// become a node, as Karpenter does when the time for registration is over: enough of
// these, and the NodePool's condition NodeRegistrationHealthy is false.
func (a *Assembly) RegistrationFailed(ctx context.Context, claim *karpv1.NodeClaim) error {
	pool := &karpv1.NodePool{}
	if err := a.kube.Get(ctx, types.NamespacedName{Name: claim.Labels[karpv1.NodePoolLabelKey]}, pool); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == pool.UID }) {
		return nil // the pool that bought it is gone, and this one bears its name
	}
	healthy := pool.StatusConditions().Get(karpv1.ConditionTypeNodeRegistrationHealthy)
	if a.poolHealth.DryRun(pool.UID, false).Status() == nodepoolhealth.StatusUnhealthy && !healthy.IsFalse() {
		stored := pool.DeepCopy()
		pool.StatusConditions(status.WithClock(a.clock)).SetFalse(karpv1.ConditionTypeNodeRegistrationHealthy,
			"RegistrationFailed", "Failed to register node")
		// Conditions are one list, which others write too.
		err := a.kube.Status().Patch(ctx, pool, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing condition %s of NodePool %s: %w", karpv1.ConditionTypeNodeRegistrationHealthy, pool.Name, err)
		}
	}
	a.poolHealth.Update(pool.UID, false)
	return nil
}
