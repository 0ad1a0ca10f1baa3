package karpenter

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uncopied is a client for controllers that read single objects and change none of them: it
// hands out what the cache holds, and not a copy.
type uncopied struct{ client.Client }

// Get reads an object, of which only the fields at its top may be changed.
func (u uncopied) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return u.Client.Get(ctx, key, o, append(opts, client.UnsafeDisableDeepCopy)...)
}
