package nodeclaims

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/nodeautoprovision/nap/internal/controller/leadership"
)

// MaybeCreated reports whether a NodeClaim may exist although its create returned an
// error. It may, unless the API server clearly refused it, or it was never asked.
func MaybeCreated(err error) bool {
	var notHeld *leadership.NotHeldError
	switch {
	case errors.As(err, &notHeld),
		apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err),
		apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return false
	}
	return true
}
