package cloudprovider

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// classReader reads AKSNodeClasses.
type classReader struct{ kube client.Reader }

// get reads the class that a claim or NodePool refers to; one that is being deleted is not found.
func (r classReader) get(ctx context.Context, ref *karpv1.NodeClassReference) (*v1beta1.AKSNodeClass, error) {
	class, err := r.peek(ctx, ref)
	if err != nil {
		return nil, err
	}
	return class.DeepCopy(), nil
}

// peek is get for those that are asked often and change nothing: what it returns is in the cache.
func (r classReader) peek(ctx context.Context, ref *karpv1.NodeClassReference) (*v1beta1.AKSNodeClass, error) {
	if ref == nil {
		return nil, errors.New("nodeClassRef is missing; refer to an AKSNodeClass")
	}
	if ref.Group != v1beta1.Group || ref.Kind != "AKSNodeClass" {
		return nil, fmt.Errorf("nodeClassRef is a %s of group %q; it must be an AKSNodeClass of group %s", ref.Kind, ref.Group, v1beta1.Group)
	}
	class := &v1beta1.AKSNodeClass{}
	if err := r.kube.Get(ctx, types.NamespacedName{Name: ref.Name}, class, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("read AKSNodeClass %q: %w", ref.Name, err)
	}
	if !class.DeletionTimestamp.IsZero() {
		return nil, apierrors.NewNotFound(v1beta1.GroupVersion().WithResource("aksnodeclasses").GroupResource(), ref.Name)
	}
	return class, nil
}
