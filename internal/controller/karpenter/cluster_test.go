package karpenter

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
)

// The cluster state is Karpenter's own, with its locks.
func TestPendingDisruptionOfAStaticPool(t *testing.T) {
	c := Cluster{state.NewCluster(clock.RealClock{}, nil, nil)}
	for _, name := range []string{"static-a", "static-b"} {
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.NodePoolLabelKey: "static"}}}
		claim.Status.ProviderID = "azure:///" + name
		c.UpdateNodeClaim(claim)
	}
	steps := []struct {
		name                                  string
		do                                    func()
		wantActive, wantDeleting, wantPending int
	}{
		{"about to go", func() { c.PendingDisruption("static", "static-a", true) }, 1, 0, 1},
		{"stays after all", func() { c.PendingDisruption("static", "static-a", false) }, 2, 0, 0},
		{"about to go again", func() { c.PendingDisruption("static", "static-a", true) }, 1, 0, 1},
		{"replaced", func() { c.Replaced("static-a") }, 1, 1, 0},
		{"without a machine", func() { c.Replaced("static-c") }, 1, 1, 0},
		{"rolled back", func() { c.PendingDisruption("static", "static-a", false) }, 2, 0, 0},
	}
	for _, step := range steps {
		done := make(chan struct{})
		go func() {
			defer close(done)
			step.do()
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the cluster's lock is held for ever", step.name)
		}
		active, deleting, pending := c.NodePoolState.GetNodeCount("static")
		if active != step.wantActive || deleting != step.wantDeleting || pending != step.wantPending {
			t.Errorf("%s: %d active, %d deleting, %d pending, want %d, %d, %d", step.name,
				active, deleting, pending, step.wantActive, step.wantDeleting, step.wantPending)
		}
	}
}
