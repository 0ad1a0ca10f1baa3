package provisioning

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// replace makes claims until a NodePool has so many that stay, as Karpenter does for a static
// one when a claim goes. It returns how many it made.
func (w *azureWorld) replace(pool *karpv1.NodePool, replicas, made int) int {
	w.t.Helper()
	for _, c := range w.claims() {
		if c.DeletionTimestamp.IsZero() {
			replicas--
		}
	}
	for i := range max(0, replicas) {
		claim := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("general-s%d", made+i), Labels: map[string]string{karpv1.NodePoolLabelKey: pool.Name},
				Finalizers: []string{karpv1.TerminationFinalizer},
			},
			Spec: karpv1.NodeClaimSpec{NodeClassRef: pool.Spec.Template.Spec.NodeClassRef, Requirements: pool.Spec.Template.Spec.Requirements},
		}
		if err := w.kube.Create(w.ctx, claim); err != nil {
			w.t.Fatal(err)
		}
	}
	return max(0, replicas)
}

// A static NodePool buys as little with an image that is broken as pods do.
func TestStaticPoolWithBrokenImageBacksOff(t *testing.T) {
	inAzureWorld(t, "Standard_D4s_v5", nil, func(t *testing.T, w *azureWorld) {
		pool := &karpv1.NodePool{}
		if err := w.kube.Get(w.ctx, client.ObjectKey{Name: "general"}, pool); err != nil {
			t.Fatal(err)
		}
		made := 0
		for begin := time.Now(); time.Since(begin) < time.Hour; time.Sleep(time.Second) {
			made += w.replace(pool, 2, made)
			w.deliver()
		}
		// Two at once, two that replace them, and two that probe.
		if got := len(w.failedAt); got < 4 || got > 6 {
			t.Errorf("%d machines of %d claims did not boot within an hour, want 4 to 6", got, made)
		}
		if made > 40 {
			t.Errorf("%d claims were made within an hour, want those that fail, and two in five minutes that are held back", made)
		}
	})
}
