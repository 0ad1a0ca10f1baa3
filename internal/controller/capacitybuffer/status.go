package capacitybuffer

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	api "sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1"
	"sigs.k8s.io/karpenter/pkg/controllers/capacitybuffer"

	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
)

// status writes the condition Provisioning of CapacityBuffers. It has no state of its own.
type status struct {
	kube  client.Client
	clock clock.Clock
}

// write brings the conditions of all buffers up to date with a plan.
func (s *status) write(ctx context.Context, plans []provisioning.BufferPlan) error {
	of := map[client.ObjectKey]*provisioning.BufferPlan{}
	for i := range plans {
		of[client.ObjectKey{Namespace: plans[i].Namespace, Name: plans[i].Name}] = &plans[i]
	}
	var list api.CapacityBufferList
	if err := s.kube.List(ctx, &list); err != nil {
		return fmt.Errorf("listing CapacityBuffers: %w", err)
	}
	var errs []error
	for i := range list.Items {
		b := &list.Items[i]
		now := condition(b, of[client.ObjectKeyFromObject(b)])
		if now == nil {
			continue
		}
		stored := b.DeepCopy()
		now.Type, now.ObservedGeneration, now.LastTransitionTime = api.ProvisioningCondition, b.Generation, metav1.NewTime(s.clock.Now())
		if !apimeta.SetStatusCondition(&b.Status.Conditions, *now) {
			continue
		}
		// The lock keeps what Karpenter's controller is writing at this moment.
		err := s.kube.Status().Patch(ctx, b, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("writing the status of CapacityBuffer %s/%s: %w", b.Namespace, b.Name, err))
		}
	}
	return errors.Join(errs...)
}

// condition says how far a buffer's room is there, with Karpenter's reasons. It is nil
// where the plan is of another state of the buffer.
func condition(b *api.CapacityBuffer, plan *provisioning.BufferPlan) *metav1.Condition {
	no := func(reason, message string) *metav1.Condition {
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch {
	case !apimeta.IsStatusConditionTrue(b.Status.Conditions, api.ReadyForProvisioningCondition):
		return no(capacitybuffer.ReasonNotReadyForProvisioning, "The condition ReadyForProvisioning says what is missing.")
	case b.Status.Replicas == nil || *b.Status.Replicas == 0:
		return no(capacitybuffer.ReasonBufferEmpty, "The buffer asks for no pods.")
	case plan == nil || plan.Wanted != int(*b.Status.Replicas):
		return nil
	case plan.Ready == plan.Wanted:
		return &metav1.Condition{
			Status: metav1.ConditionTrue, Reason: capacitybuffer.ReasonFitsExistingCapacity,
			Message: fmt.Sprintf("There is room for all %d pods; it costs %s.", plan.Wanted, plan.Cost),
		}
	}
	message := fmt.Sprintf("There is room for %d of %d pods, and machines are on their way for %d; it costs %s.",
		plan.Ready, plan.Wanted, plan.Coming, plan.Cost)
	if plan.Why != "" {
		message += " The others have no place: " + plan.Why
	}
	return no(capacitybuffer.ReasonRequiresNewCapacity, message)
}
