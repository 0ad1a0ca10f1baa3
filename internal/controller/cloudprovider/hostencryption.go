package cloudprovider

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
)

// hostEncryption is what Azure last said of encryption at host, which is a feature that
// a subscription has to be registered for. It is safe for concurrent use.
type hostEncryption struct {
	mu sync.Mutex
	// refused is when Azure last said that the feature is not registered, zero for
	// never, and text its words with the command that registers it.
	refused time.Time
	text    string
}

// note takes in a refusal.
func (h *hostEncryption) note(failure *unavailable.Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused, h.text = time.Now(), failure.Error()
}

// failure is why a class that asks for encryption at host is not ready, or nil: a
// refusal is believed for a while, and then Azure is asked again by a purchase.
func (h *hostEncryption) failure(class *v1beta1.AKSNodeClass) *nodeclass.Failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	asks := class.Spec.Security != nil && or(class.Spec.Security.EncryptionAtHost, false)
	if !asks || h.refused.IsZero() || time.Since(h.refused) >= unavailable.RestTTL {
		return nil
	}
	return &nodeclass.Failure{Reason: string(unavailable.HostEncryptionOff), Message: h.text}
}

// hostEncryptionRefused makes a class not ready at once whose machine Azure has refused
// for its encryption at host. Validate keeps it so.
func (f *ClassFinder) hostEncryptionRefused(ctx context.Context, kube client.Client, class *v1beta1.AKSNodeClass,
	refusal *unavailable.Failure) error {
	f.encryption.note(refusal)
	failure := f.encryption.failure(class)
	if failure == nil {
		return nil
	}
	changed := class.DeepCopy()
	changed.StatusConditions().SetFalse(v1beta1.ConditionValidationSucceeded, failure.Reason, failure.Message)
	err := kube.Status().Patch(ctx, changed, client.MergeFromWithOptions(class.DeepCopy(), client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the status controller comes within minutes
		return fmt.Errorf("writing the status of AKSNodeClass %s: %w", class.Name, err)
	}
	return nil
}
