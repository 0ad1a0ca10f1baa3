package karpenter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	// rebootsAtMost is how often a node is rebooted within rebootsWithin before it is
	// replaced. As in Karpenter.
	rebootsAtMost = 2
	rebootsWithin = 24 * time.Hour
)

// rebootHistory is when nodes were rebooted, by the UID of their claim. It is lost in a
// restart of the controller, as Karpenter's is.
type rebootHistory map[types.UID][]time.Time

// exhausted reports whether a claim's node has been rebooted as often as it may be.
func (h rebootHistory) exhausted(claim types.UID, now time.Time) bool {
	return len(h.recent(claim, now)) >= rebootsAtMost
}

func (h rebootHistory) recent(claim types.UID, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(h[claim]), func(t time.Time) bool { return now.Sub(t) >= rebootsWithin })
}

// add notes a reboot, and forgets those that do not count any more.
func (h rebootHistory) add(claim types.UID, now time.Time) {
	for uid := range h {
		if h[uid] = h.recent(uid, now); len(h[uid]) == 0 {
			delete(h, uid)
		}
	}
	h[claim] = append(h[claim], now)
}

// reboot asks for a reboot of a claim's node: Karpenter's controller drains it, has the cloud
// restart the machine, and watches it come back.
func (r *repair) reboot(ctx context.Context, claim *v1.NodeClaim, why *repairMatch) error {
	stored := claim.DeepCopy()
	if bound := why.bound(claim); bound != nil {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1.RebootTerminationGracePeriodAnnotationKey, bound.String())
	} else {
		delete(claim.Annotations, v1.RebootTerminationGracePeriodAnnotationKey)
	}
	if err := r.kube.Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	stored = claim.DeepCopy()
	reason := string(v1.DisruptionReasonUnhealthy)
	conditions := claim.StatusConditions(status.WithClock(r.clock))
	conditions.SetTrueWithReason(v1.ConditionTypeDisruptionReason, reason, reason)
	conditions.SetTrueWithReason(v1.ConditionTypeRebooting, v1.RebootReasonRequested,
		fmt.Sprintf("rebooting for %s/%s", why.condition, why.reason))
	if err := r.kube.Status().Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.reboots.add(claim.UID, r.clock.Now())
	r.cluster.UpdateNodeClaim(claim) // the next node's budget counts it
	log.FromContext(ctx).Info("rebooting an unhealthy node",
		"Node", claim.Status.NodeName, "NodeClaim", claim.Name, "condition", why.condition)
	return nil
}

// rebootOver reports whether no reboot of the claim's node is under way. One that has just
// ended is no reason of disruption any more.
func (r *repair) rebootOver(ctx context.Context, claim *v1.NodeClaim) (bool, error) {
	if claim.StatusConditions().Get(v1.ConditionTypeRebooting).IsTrue() {
		return false, nil
	}
	if !leftByReboot(claim) || !claim.DeletionTimestamp.IsZero() {
		return true, nil
	}
	stored := claim.DeepCopy()
	if err := claim.StatusConditions().Clear(v1.ConditionTypeDisruptionReason); err != nil {
		return false, fmt.Errorf("clearing the reason of a reboot of NodeClaim %s: %w", claim.Name, err)
	}
	err := r.kube.Status().Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("clearing the reason of a reboot of NodeClaim %s: %w", claim.Name, err))
	}
	return true, nil
}

// leftByReboot reports whether the claim says that it is disrupted because of a reboot that
// has ended.
func leftByReboot(claim *v1.NodeClaim) bool {
	why := claim.StatusConditions().Get(v1.ConditionTypeDisruptionReason)
	return !rebootedAt(claim).IsZero() && why.IsTrue() && why.Reason == string(v1.DisruptionReasonUnhealthy) && !moved(claim)
}

// rebootedAt is when the last reboot of the claim's node ended, zero without one.
func rebootedAt(claim *v1.NodeClaim) time.Time {
	if c := claim.StatusConditions().Get(v1.ConditionTypeRebooting); c != nil && c.Status == metav1.ConditionFalse {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
