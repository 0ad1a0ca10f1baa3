package capacitybuffer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// quiet is a cluster in which nothing changes.
type quiet struct{}

func (quiet) Pods(context.Context) []*corev1.Pod { return nil }
func (quiet) Changed() <-chan struct{}           { return nil }
func (quiet) Revision() uint64                   { return 1 }
func (quiet) SetBuffers([]*fleet.Buffer)         {}
func (quiet) HasBuffers() bool                   { return true }

// Pauses of purchases end in a cluster in which nothing changes, too.
func TestBuffersThatLackRoomArePlannedAgain(t *testing.T) {
	for _, c := range []struct{ ready, least, most int }{{0, 3, 6}, {2, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := NewLoop(Config{
				Kube: fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), Source: quiet{}, Mirror: quiet{}, Clock: clock.RealClock{},
			})
			planned := 0
			l.Plan(func() {
				planned++
				l.Planned([]provisioning.BufferPlan{{Name: "spare", Wanted: 2, Ready: c.ready}})
			})
			l.Planned([]provisioning.BufferPlan{{Name: "spare", Wanted: 2, Ready: c.ready}})
			done := make(chan error)
			go func() { done <- l.Start(ctx) }()
			time.Sleep(time.Minute)
			cancel()
			if err := <-done; err != nil || planned < c.least || planned > c.most {
				t.Errorf("with room for %d of 2 pods: planned %d times in a minute, want %d to %d (%v)", c.ready, planned, c.least, c.most, err)
			}
		})
	}
}
