package nodeclass

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass/formerhash"
)

// Hash stamps every class with the fingerprint of its spec. Machines carry the
// fingerprint of the class that they were bought under; where the two differ the
// machine has drifted.
//
// When the way of computing the fingerprint changes, every machine would seem to
// have drifted. So on a new version the NodeClaims are stamped again, except those
// that had drifted before.
type Hash struct {
	kube client.Client
}

// NewHash returns the hash controller.
func NewHash(kube client.Client) *Hash { return &Hash{kube: kube} }

// Register adds the controller to a manager.
func (h *Hash) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeclass.hash").
		For(&v1beta1.AKSNodeClass{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), h))
}

// Reconcile stamps one class.
func (h *Hash) Reconcile(ctx context.Context, class *v1beta1.AKSNodeClass) (reconcile.Result, error) {
	hash, err := class.Hash()
	if err != nil {
		return reconcile.Result{}, err
	}
	former, err := formerhash.Of(class)
	if err != nil {
		return reconcile.Result{}, err
	}
	// The claims come first: a crash in between repeats the stamping.
	if class.Annotations[v1beta1.AnnotationHashVersion] != v1beta1.HashVersion ||
		slices.Contains(former, class.Annotations[v1beta1.AnnotationHash]) {
		if err := h.restampClaims(ctx, class.Name, hash, former); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, client.IgnoreNotFound(h.stamp(ctx, class, hash))
}

// restampClaims gives the class's claims today's hash: those with a hash of another version,
// and those with one of the former hashes of the class's spec.
func (h *Hash) restampClaims(ctx context.Context, class, hash string, former []string) error {
	claims, err := claimsOf(ctx, h.kube, class)
	if err != nil {
		return err
	}
	for i := range claims {
		claim := &claims[i]
		has := claim.Annotations[v1beta1.AnnotationHash]
		if slices.Contains(former, has) {
			if err := client.IgnoreNotFound(h.stamp(ctx, claim, hash)); err != nil {
				return err
			}
			continue
		}
		if claim.Annotations[v1beta1.AnnotationHashVersion] == v1beta1.HashVersion {
			continue
		}
		stamped := hash
		if claim.StatusConditions().Get(karpv1.ConditionTypeDrifted) != nil {
			// It is being replaced for a reason that the new fingerprint would hide;
			// only the version moves on.
			stamped = has
		}
		if err := client.IgnoreNotFound(h.stamp(ctx, claim, stamped)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hash) stamp(ctx context.Context, obj client.Object, hash string) error {
	stored := obj.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		annotations[k] = v
	}
	annotations[v1beta1.AnnotationHash] = hash
	annotations[v1beta1.AnnotationHashVersion] = v1beta1.HashVersion
	if equality.Semantic.DeepEqual(annotations, stored.GetAnnotations()) {
		return nil
	}
	obj.SetAnnotations(annotations)
	if err := h.kube.Patch(ctx, obj, client.MergeFrom(stored)); err != nil {
		return fmt.Errorf("stamping the hash on %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// claimsOf lists the NodeClaims that use a class.
func claimsOf(ctx context.Context, kube client.Client, class string) ([]karpv1.NodeClaim, error) {
	var list karpv1.NodeClaimList
	if err := kube.List(ctx, &list, client.MatchingFields{
		"spec.nodeClassRef.group": v1beta1.Group,
		"spec.nodeClassRef.kind":  kind,
		"spec.nodeClassRef.name":  class,
	}); err != nil {
		return nil, fmt.Errorf("listing the NodeClaims of AKSNodeClass %s: %w", class, err)
	}
	return list.Items, nil
}

const kind = "AKSNodeClass"
