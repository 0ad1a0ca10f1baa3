package nodeclaims

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// MaybeCreated reports whether a NodeClaim may exist although its create returned an
// error. It may, unless the API server clearly refused it.
func MaybeCreated(err error) bool {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err),
		apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return false
	}
	return true
}
