package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// cached is a manager with a cache, which keeps what is added to it.
type cached struct{ recorded }

func (*cached) GetCache() cache.Cache { return &informertest.FakeInformers{} }

// TestWatchesWaitForAllQueues: once controllers start, and neither while they are registered
// nor longer than their context lasts.
func TestWatchesWaitForAllQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr := &cached{}
		controllers, err := beginTogether(mgr)
		if err != nil {
			t.Fatal(err)
		}
		watch := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := controllers.GetCache().GetInformer(ctx, &corev1.Pod{})
			return time.Since(began), err
		}
		if took, err := watch(t.Context()); err != nil || took != 0 {
			t.Errorf("registered after %s, %v", took, err)
		}
		signal := mgr.added[0]
		if e, ok := signal.(manager.LeaderElectionRunnable); !ok || e.NeedLeaderElection() {
			t.Errorf("%T runs with the lease alone: a standby warms up without it", signal)
		}
		if err := signal.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took, err := watch(t.Context()); err != nil || took != queuesBeginWithin {
			t.Errorf("watched after %s, %v; want %s", took, err, queuesBeginWithin)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if took, err := watch(ctx); !errors.Is(err, context.Canceled) || took != 0 {
			t.Errorf("the context has ended: watched after %s, %v", took, err)
		}
	})
}
