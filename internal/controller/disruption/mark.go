package disruption

import (
	"context"
	"fmt"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// annotate writes the move on a claim, or removes it with an empty text. A claim
// that is gone or leaves is left alone.
func (l *Loop) annotate(ctx context.Context, name, text string) error {
	claim, err := l.claim(ctx, name)
	if claim == nil || err != nil {
		return err
	}
	if claim.Annotations[v1beta1.AnnotationCommand] == text {
		return nil
	}
	stored := claim.DeepCopy()
	if text == "" {
		delete(claim.Annotations, v1beta1.AnnotationCommand)
	} else {
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[v1beta1.AnnotationCommand] = text
	}
	return ignoreGone(l.Clients.Cached.Patch(ctx, claim, client.MergeFrom(stored)), "annotating NodeClaim "+name)
}

// taint puts Karpenter's taint of a disruption on a node, or takes it away. A node
// that is being deleted keeps what it has.
func (l *Loop) taint(ctx context.Context, name string, on bool) error {
	node := &corev1.Node{}
	if err := l.Clients.Cached.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return ignoreGone(err, "reading node "+name)
	}
	is := func(t corev1.Taint) bool { return t.MatchTaint(&karpv1.DisruptedNoScheduleTaint) }
	if slices.ContainsFunc(node.Spec.Taints, is) == on || !node.DeletionTimestamp.IsZero() {
		return nil
	}
	stored := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, is)
	if on {
		node.Spec.Taints = append(node.Spec.Taints, karpv1.DisruptedNoScheduleTaint)
	}
	// The lock keeps the list that somebody else is changing at this moment.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	return ignoreGone(l.Clients.Cached.Patch(ctx, node, patch), "tainting node "+name)
}

// condition sets the claim's condition DisruptionReason, or clears it with an
// empty reason.
func (l *Loop) condition(ctx context.Context, name, reason string) error {
	claim, err := l.claim(ctx, name)
	if claim == nil || err != nil {
		return err
	}
	stored := claim.DeepCopy()
	conditions := claim.StatusConditions(status.WithClock(l.Clock))
	if reason == "" {
		_ = conditions.Clear(karpv1.ConditionTypeDisruptionReason) // it is no condition that the others hang on
	} else {
		conditions.SetTrueWithReason(karpv1.ConditionTypeDisruptionReason, reason, reason)
	}
	if equality.Semantic.DeepEqual(stored.Status, claim.Status) {
		return nil
	}
	// Like lists of taints, a list of conditions is replaced as a whole.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	return ignoreGone(l.Clients.Cached.Status().Patch(ctx, claim, patch), "writing the status of NodeClaim "+name)
}

// claim returns a copy of a claim that exists and does not leave, or nil.
func (l *Loop) claim(ctx context.Context, name string) (*karpv1.NodeClaim, error) {
	claim := &karpv1.NodeClaim{}
	if err := l.Clients.Cached.Get(ctx, client.ObjectKey{Name: name}, claim); err != nil {
		return nil, ignoreGone(err, "reading NodeClaim "+name)
	}
	if !claim.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return claim, nil
}

func ignoreGone(err error, doing string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
