package karpenter

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// behindClient reads NodeClaims as they were when it was made.
type behindClient struct {
	client.Client
	claim *v1.NodeClaim
}

func (c behindClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if claim, is := o.(*v1.NodeClaim); is && key.Name == c.claim.Name {
		c.claim.DeepCopyInto(claim)
		return nil
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// The lifecycle controller looks at a NodeClaim when the cache has what it has written itself:
// while the cache is behind the NodeClaim is as if it were not there.
func TestLifecycleSeesWhatItHasWritten(t *testing.T) {
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-a"}}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim).WithStatusSubresource(claim).Build()
	clk := clocktesting.NewFakeClock(time.Now())
	writes := newOwnWrites(kube, clk)
	key := client.ObjectKeyFromObject(claim)
	if err := kube.Get(t.Context(), key, claim); err != nil {
		t.Fatal(err)
	}
	behind := freshClaims{behindClient{kube, claim.DeepCopy()}, writes}
	seen := func(from client.Client) bool {
		t.Helper()
		err := from.Get(t.Context(), key, &v1.NodeClaim{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return !apierrors.IsNotFound(err)
	}
	write := func(status bool) {
		t.Helper()
		stored := claim.DeepCopy()
		claim.Labels = map[string]string{"at": clk.Now().String()}
		claim.StatusConditions().SetTrueWithReason(v1.ConditionTypeLaunched, "Launched", clk.Now().String())
		to := writes.Patch(t.Context(), claim.DeepCopy(), client.MergeFrom(stored))
		if status {
			to = writes.Status().Patch(t.Context(), claim, client.MergeFrom(stored))
		}
		if to != nil {
			t.Fatal(to)
		}
	}
	if !seen(behind) {
		t.Error("nothing was written, and it is not seen")
	}
	for what, status := range map[string]bool{"a label": false, "the status": true} {
		clk.Step(time.Second)
		write(status)
		if seen(behind) {
			t.Errorf("%s was written, and what was before is seen", what)
		}
		if !seen(freshClaims{kube, writes}) {
			t.Errorf("%s was written and read, and is not seen", what)
		}
		if !seen(behind) { // it was seen once, and need not be remembered
			t.Errorf("%s was read, and is still waited for", what)
		}
	}
	write(true)
	clk.Step(seenWithin + time.Second)
	if !seen(behind) {
		t.Error("a write that does not come is waited for for ever")
	}
	write(true)
	if err := kube.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if seen(freshClaims{kube, writes}) || len(writes.written) > 0 {
		t.Errorf("of a NodeClaim that is gone %v is remembered", writes.written)
	}
}

// What fails is not waited for.
func TestLifecycleDoesNotAwaitWhatFailed(t *testing.T) {
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-a", ResourceVersion: "7"}}
	writes := newOwnWrites(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), clocktesting.NewFakeClock(time.Now()))
	stored := claim.DeepCopy()
	claim.Labels = map[string]string{"a": "b"}
	if err := writes.Patch(t.Context(), claim, client.MergeFrom(stored)); !apierrors.IsNotFound(err) {
		t.Fatalf("got %v", err)
	}
	if len(writes.written) > 0 {
		t.Errorf("%v is remembered", writes.written)
	}
}
