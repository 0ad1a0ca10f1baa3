package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// queuesBeginWithin is how long watches wait for the queues of other controllers to begin.
const queuesBeginWithin = 20 * time.Millisecond

// queuesTogether is a manager for controllers whose work queues are to begin together.
//
// controller-runtime brings two gauges of each queue up to date every half second, by a timer
// that begins with the queue. Each timer which is due by itself wakes the process; with some
// forty queues this takes half a percent of a core while nothing happens. Timers which are due
// together wake it once. Controllers start together, but each also gets all objects that it
// watches, and keeps the processors from the queue of the next one. So objects come
// queuesBeginWithin later: by then all queues have begun.
type queuesTogether struct {
	manager.Manager
	cache *laterCache
}

// beginTogether returns the manager for controllers. What is added to it runs as if it were
// added to mgr.
func beginTogether(mgr manager.Manager) (*queuesTogether, error) {
	later := &laterCache{Cache: mgr.GetCache(), started: make(chan struct{})}
	if err := mgr.Add(&startSignal{started: later.started}); err != nil {
		return nil, fmt.Errorf("adding what tells that controllers start: %w", err)
	}
	return &queuesTogether{Manager: mgr, cache: later}, nil
}

// GetCache returns the cache from which controllers get what they watch.
func (m *queuesTogether) GetCache() cache.Cache { return m.cache }

// laterCache waits before it hands out an informer, once controllers start: not while they
// are registered, one after the other.
type laterCache struct {
	cache.Cache
	started chan struct{} // closed when the manager starts them
}

// GetInformer returns the informer of a kind. It fails as the cache does, and when ctx ends.
func (c *laterCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	select {
	case <-c.started:
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the queues of other controllers: %w", ctx.Err())
		case <-time.After(queuesBeginWithin): // real time: it is for the processors
		}
	default:
	}
	return c.Cache.GetInformer(ctx, obj, opts...)
}

// startSignal runs as soon as the caches are filled, before any controller that waits for the
// lease or for its warm-up.
type startSignal struct{ started chan struct{} }

// NeedLeaderElection makes the manager run it on standbys, too.
func (*startSignal) NeedLeaderElection() bool { return false }

// Start tells that controllers start.
func (s *startSignal) Start(context.Context) error {
	close(s.started)
	return nil
}
