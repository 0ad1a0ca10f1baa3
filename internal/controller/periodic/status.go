package periodic

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteStatus writes the status of an object that a look has changed, and reports whether
// it did. It does not where nothing differs from what is stored; and where another writer
// was faster or the object is gone, since the next look sees it as it is then. Conditions
// are one list with several writers, so the whole object is locked.
func WriteStatus(ctx context.Context, kube client.Client, stored, object client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(stored, object) {
		return false, nil
	}
	err := kube.Status().Patch(ctx, object, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("writing the status of %T %s: %w", object, object.GetName(), err)
	}
	return true, nil
}
