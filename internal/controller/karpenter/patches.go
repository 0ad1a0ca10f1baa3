package karpenter

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// patchClient is a client that does not send a merge patch of a NodeClaim in which nothing
// but the status differs. The API server ignores a status that comes with the rest of an
// object, and takes as long for it as for a write. Karpenter's lifecycle controller sends one
// whenever a condition changes, before it writes the status: three for each machine, and
// each in the way of a node that becomes ready.
//
// What it does not send leaves the object as the caller has it.
type patchClient struct{ client.Client }

// Patch is that of [client.Client].
func (c patchClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if _, is := o.(*v1.NodeClaim); !is || p.Type() != types.MergePatchType {
		return c.Client.Patch(ctx, o, p, opts...)
	}
	data, err := p.Data(o)
	if err != nil {
		return fmt.Errorf("comparing NodeClaim %s with what is stored: %w", o.GetName(), err)
	}
	if onlyStatus(data) {
		return nil
	}
	return c.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), opts...)
}

// onlyStatus reports whether a merge patch changes nothing but a status, or nothing at all.
func onlyStatus(patch []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(patch, &fields) != nil {
		return false
	}
	delete(fields, "status")
	return len(fields) == 0
}
