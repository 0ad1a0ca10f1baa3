package karpenter

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/controllers/node/termination/terminator"
	"sigs.k8s.io/karpenter/pkg/events"
)

// Evictions is Karpenter's eviction queue. A pod leaves it when it has been evicted.
type Evictions struct {
	*terminator.Queue
}

// Add evicts pods as soon as their budgets allow it, and never deletes them past those.
// The termination of a node that has a deadline gives its pods that deadline later.
func (e Evictions) Add(pods ...*corev1.Pod) { e.Queue.Add(nil, pods...) }

// newEvictions is a queue that evicts a pod once, however late the cache tells of it.
//
// Karpenter adds the pods of a node that is drained every second, as the cache has them
// (v1.15.0). While hundreds of nodes are drained, the cache is many seconds behind, and each
// pod was evicted, and counted as drained, two or three times.
func newEvictions(kube client.Client, clk clock.Clock, recorder events.Recorder) Evictions {
	once := &evictOnce{Client: kube, clock: clk, evicted: map[types.UID]time.Time{}}
	return Evictions{terminator.NewQueue(clk, once, recorder)}
}

// evictOnce is a client that says of pods which it has evicted that they are gone. It is safe for
// concurrent use.
type evictOnce struct {
	client.Client
	clock clock.PassiveClock

	mu sync.Mutex
	// evicted is when pods were evicted, by their UIDs; cleared is when those of long ago were
	// last forgotten.
	evicted map[types.UID]time.Time
	cleared time.Time
}

// evictedFor is how long an eviction is remembered: longer than a cache is behind.
const evictedFor = 5 * time.Minute

// SubResource is that of [client.Client].
func (e *evictOnce) SubResource(name string) client.SubResourceClient {
	sub := e.Client.SubResource(name)
	if name != "eviction" {
		return sub
	}
	return evictOnceWrites{sub, e}
}

// evictOnceWrites are the evictions of evictOnce.
type evictOnceWrites struct {
	client.SubResourceClient
	once *evictOnce
}

// Create evicts a pod, unless that has been done.
func (w evictOnceWrites) Create(ctx context.Context, pod, eviction client.Object, opts ...client.SubResourceCreateOption) error {
	if w.once.has(pod.GetUID()) {
		return apierrors.NewNotFound(corev1.Resource("pods"), pod.GetName())
	}
	err := w.SubResourceClient.Create(ctx, pod, eviction, opts...)
	if err == nil {
		w.once.remember(pod.GetUID())
	}
	return err
}

func (e *evictOnce) has(pod types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, known := e.evicted[pod]
	return known && e.clock.Since(at) < evictedFor
}

// remember takes a pod in and forgets, now and then, those that were evicted long ago.
func (e *evictOnce) remember(pod types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	if now.Sub(e.cleared) >= evictedFor {
		maps.DeleteFunc(e.evicted, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= evictedFor })
		e.cleared = now
	}
	e.evicted[pod] = now
}
