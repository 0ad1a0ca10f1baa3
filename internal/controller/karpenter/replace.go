package karpenter

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// mark says on a claim that its node is due to be replaced, why, since when, and for how
// long it is drained. The disruption loop does the rest, and ends it where the mark goes.
func (r *repair) mark(ctx context.Context, claim *v1.NodeClaim, why *repairMatch, since time.Time) error {
	repair := &fleet.Repair{Condition: string(why.condition), Since: since}
	if why.grace != nil {
		repair.Drain = why.bound(claim)
	}
	if before := kube.RepairOf(claim); before != nil && before.Condition == repair.Condition {
		repair.Since = before.Since // a restart has forgotten it
	}
	text := kube.RepairText(repair)
	if claim.Annotations[v1beta1.AnnotationRepair] == text {
		return nil
	}
	stored := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1beta1.AnnotationRepair, text)
	if err := r.kube.Patch(ctx, claim, client.MergeFrom(stored)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking NodeClaim %s for repair: %w", claim.Name, err)
	}
	log.FromContext(ctx).Info("an unhealthy node is due to be replaced",
		"Node", claim.Status.NodeName, "NodeClaim", claim.Name, "condition", why.condition)
	return nil
}

// unmark takes the mark away from a claim that stays.
func (r *repair) unmark(ctx context.Context, claim *v1.NodeClaim) error {
	if _, marked := claim.Annotations[v1beta1.AnnotationRepair]; !marked || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	stored := claim.DeepCopy()
	delete(claim.Annotations, v1beta1.AnnotationRepair)
	if err := r.kube.Patch(ctx, claim, client.MergeFrom(stored)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unmarking NodeClaim %s, which is not due for repair: %w", claim.Name, err)
	}
	return nil
}

// moved reports whether a command of the disruption loop is removing the claim.
func moved(claim *v1.NodeClaim) bool { return claim.Annotations[v1beta1.AnnotationCommand] != "" }
