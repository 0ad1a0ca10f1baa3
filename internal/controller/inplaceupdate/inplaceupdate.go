// Package inplaceupdate brings running machines up to date where that needs no new
// machine: the tags of their node class, and the identities of the cluster.
//
// A fingerprint of both is kept on the NodeClaim; where it differs from today's,
// the cloud is asked to update the machine, and the fingerprint is written
// afterwards, so that a crash between the two only makes it be asked again. NodeClaims of
// AKS machines that do not name their machine yet are given its id. Start with
// [Controller].
package inplaceupdate

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// unregistered is when a claim is looked at again whose machine is still on its
// way: it is left alone until it is a node.
const unregistered = time.Minute

// Updater changes machines.
type Updater interface {
	// InPlaceHash is the fingerprint of what machines of the class should have.
	InPlaceHash(class *v1beta1.AKSNodeClass) string
	// Update gives the machine of a claim what it should have; nil where there is
	// no machine.
	Update(ctx context.Context, claim string, class *v1beta1.AKSNodeClass) error
	// AKSMachine is the resource id of the AKS machine behind a provider id, empty for plain
	// machines.
	AKSMachine(providerID string) string
}

// Controller updates the machines of NodeClaims.
type Controller struct {
	kube    client.Client
	updater Updater
}

// New returns the controller.
func New(kube client.Client, updater Updater) *Controller { return &Controller{kube, updater} }

// Register adds the controller to a manager.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclaim.inplace").
		For(&karpv1.NodeClaim{}).
		Watches(&v1beta1.AKSNodeClass{}, handler.EnqueueRequestsFromMapFunc(c.claimsOf)).
		// Azure grants a subscription some eight changes of machines a second.
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// claimsOf are the claims of a class that has changed.
func (c *Controller) claimsOf(ctx context.Context, class client.Object) []reconcile.Request {
	var list karpv1.NodeClaimList
	if err := c.kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the claims' own events come anyway
	}
	var out []reconcile.Request
	for i := range list.Items {
		if ref := list.Items[i].Spec.NodeClassRef; ref != nil && ref.Name == class.GetName() {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
	}
	return out
}

// Reconcile updates the machine of one claim.
func (c *Controller) Reconcile(ctx context.Context, claim *karpv1.NodeClaim) (reconcile.Result, error) {
	if !claim.DeletionTimestamp.IsZero() || claim.Spec.NodeClassRef == nil || claim.Spec.NodeClassRef.Group != v1beta1.Group {
		return reconcile.Result{}, nil
	}
	class := &v1beta1.AKSNodeClass{}
	if err := c.kube.Get(ctx, types.NamespacedName{Name: claim.Spec.NodeClassRef.Name}, class); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read AKSNodeClass %s: %w", claim.Spec.NodeClassRef.Name, err)
	}
	want := c.updater.InPlaceHash(class)
	updated := claim.Annotations[v1beta1.AnnotationInPlaceUpdateHash] == want
	machine := c.updater.AKSMachine(claim.Status.ProviderID)
	if claim.Annotations[v1beta1.AnnotationAKSMachine] != "" {
		machine = "" // it is noted already
	}
	if updated && machine == "" {
		return reconcile.Result{}, nil
	}
	if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeRegistered) {
		return reconcile.Result{RequeueAfter: unregistered}, nil
	}
	if !updated {
		if err := c.updater.Update(ctx, claim.Name, class); err != nil {
			return reconcile.Result{}, fmt.Errorf("update the machine of NodeClaim %s in place: %w", claim.Name, err)
		}
	}
	stored := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[v1beta1.AnnotationInPlaceUpdateHash] = want
	if machine != "" {
		claim.Annotations[v1beta1.AnnotationAKSMachine] = machine
	}
	if err := c.kube.Patch(ctx, claim, client.MergeFrom(stored)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("note the update of NodeClaim %s: %w", claim.Name, err))
	}
	return reconcile.Result{}, nil
}
