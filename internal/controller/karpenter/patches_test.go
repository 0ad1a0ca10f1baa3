package karpenter

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestPatchesThatChangeNothingAreNotSent(t *testing.T) {
	launched := func(c *v1.NodeClaim) { c.StatusConditions().SetTrue(v1.ConditionTypeLaunched) }
	label := func(c *v1.NodeClaim) { c.Labels = map[string]string{"a": "b"} }
	both := func(c *v1.NodeClaim) { launched(c); label(c) }
	plain := func(stored *v1.NodeClaim) client.Patch { return client.MergeFrom(stored) }
	locked := func(stored *v1.NodeClaim) client.Patch {
		return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	}
	tests := map[string]struct {
		change func(*v1.NodeClaim)
		patch  func(stored *v1.NodeClaim) client.Patch
		sent   int
	}{
		"nothing":                        {func(*v1.NodeClaim) {}, plain, 0},
		"the status alone":               {launched, plain, 0},
		"a label":                        {label, plain, 1},
		"a label and the status":         {both, plain, 1},
		"the status of the same version": {launched, locked, 1},
		"a list of changes": {label, func(*v1.NodeClaim) client.Patch {
			return client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`))
		}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
			sent := 0
			count := interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					sent++
					return c.Patch(ctx, o, p, opts...)
				},
			}
			inner := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim).WithStatusSubresource(claim).WithInterceptorFuncs(count).Build()
			if err := inner.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
				t.Fatal(err)
			}
			stored := claim.DeepCopy()
			tc.change(claim)
			want := claim.DeepCopy()
			if err := (patchClient{inner}).Patch(t.Context(), claim, tc.patch(stored)); err != nil {
				t.Fatal(err)
			}
			if sent != tc.sent {
				t.Errorf("%d requests, want %d", sent, tc.sent)
			}
			got := &v1.NodeClaim{}
			if err := inner.Get(t.Context(), client.ObjectKeyFromObject(claim), got); err != nil {
				t.Fatal(err)
			}
			if got.Labels["a"] != want.Labels["a"] {
				t.Errorf("the API server has labels %v, want %v", got.Labels, want.Labels)
			}
		})
	}
}
