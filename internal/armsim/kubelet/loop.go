package kubelet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// loop is a work queue with a bounded number of workers. A key is handled by one
// worker at a time; its timer sits in the queue's heap.
type loop[K comparable] struct {
	name    string
	workers int
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[K]
	// handle works on a key and says after what time it wants to see it
	// again, zero for not before the next event. After an error the key comes back
	// with growing delay.
	handle func(ctx context.Context, key K) (again time.Duration, err error)
}

// Delays between attempts after errors.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 20 * time.Second
)

func newLoop[K comparable](name string, workers int, cfg Config, handle func(context.Context, K) (time.Duration, error)) *loop[K] {
	return &loop[K]{
		name: name, workers: workers, log: cfg.Logger, handle: handle,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[K]{Clock: cfg.Clock}),
	}
}

// run works until the context ends.
func (l *loop[K]) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, l.queue.ShutDown)
	defer stop()
	var wg sync.WaitGroup
	for range l.workers {
		wg.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	wg.Wait()
}

// next handles one key and reports whether there may be more.
func (l *loop[K]) next(ctx context.Context) bool {
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(key)
	again, err := l.handle(ctx, key)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Debug("attempt failed, trying again", "queue", l.name, "key", key, "error", err)
			l.queue.AddRateLimited(key)
		}
		return true
	}
	l.queue.Forget(key)
	if again > 0 {
		l.queue.AddAfter(key, again)
	}
	return true
}
