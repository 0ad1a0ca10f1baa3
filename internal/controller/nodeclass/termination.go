package nodeclass

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// remindEvery is how often a class that waits for its NodeClaims says so.
const remindEvery = 10 * time.Minute

// Termination keeps a deleted class until the last NodeClaim that uses it is
// gone: without the class nothing could tell how to delete the machine.
type Termination struct {
	kube     client.Client
	recorder events.Recorder
}

// NewTermination returns the termination controller.
func NewTermination(kube client.Client, recorder events.Recorder) *Termination {
	return &Termination{kube: kube, recorder: recorder}
}

// Register adds the controller to a manager.
func (t *Termination) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclass.termination").
		For(&v1beta1.AKSNodeClass{}).
		Watches(&karpv1.NodeClaim{}, handler.EnqueueRequestsFromMapFunc(classOf), builder.WithPredicates(deletionsOnly())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), t))
}

// deletionsOnly lets pass what may release a class.
func deletionsOnly() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(ctrlevent.CreateEvent) bool { return false },
		UpdateFunc:  func(ctrlevent.UpdateEvent) bool { return false },
		GenericFunc: func(ctrlevent.GenericEvent) bool { return false },
	}
}

func classOf(_ context.Context, obj client.Object) []reconcile.Request {
	ref := obj.(*karpv1.NodeClaim).Spec.NodeClassRef
	if ref == nil || ref.Group != v1beta1.Group || ref.Kind != kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ref.Name}}}
}

// Reconcile puts the finalizer on a class, or takes it off one that is deleted
// and unused.
func (t *Termination) Reconcile(ctx context.Context, class *v1beta1.AKSNodeClass) (reconcile.Result, error) {
	stored := class.DeepCopy()
	if class.DeletionTimestamp.IsZero() {
		controllerutil.AddFinalizer(class, v1beta1.TerminationFinalizer)
		return t.patchFinalizers(ctx, stored, class)
	}
	claims, err := claimsOf(ctx, t.kube, class.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(claims) > 0 {
		t.recorder.Publish(waiting(class, claims))
		return reconcile.Result{RequeueAfter: remindEvery}, nil
	}
	controllerutil.RemoveFinalizer(class, v1beta1.TerminationFinalizer)
	return t.patchFinalizers(ctx, stored, class)
}

func (t *Termination) patchFinalizers(ctx context.Context, stored, class *v1beta1.AKSNodeClass) (reconcile.Result, error) {
	if slices.Equal(stored.Finalizers, class.Finalizers) {
		return reconcile.Result{}, nil
	}
	// A merge patch replaces the whole list, so it must not be made on an old one.
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := t.kube.Patch(ctx, class, patch); err != nil {
		return afterConflict(fmt.Errorf("writing the finalizers of AKSNodeClass %s: %w", class.Name, err))
	}
	return reconcile.Result{}, nil
}

func waiting(class *v1beta1.AKSNodeClass, claims []karpv1.NodeClaim) events.Event {
	var names []string
	for i := range claims {
		names = append(names, claims[i].Name)
	}
	return event.WaitingOnClaims(class, names)
}
