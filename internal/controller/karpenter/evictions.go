package karpenter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
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
	return Evictions{terminator.NewQueue(clk, evictOnce{kube, cache.NewExpiringWithClock(clk)}, recorder)}
}

// evictOnce is a client that says of pods which it has evicted that they are gone. It is safe for
// concurrent use.
type evictOnce struct {
	client.Client
	// evicted has the UIDs of the pods.
	evicted *cache.Expiring
}

// evictedFor is how long an eviction is remembered: longer than a cache is behind.
const evictedFor = 5 * time.Minute

// SubResource is that of [client.Client].
func (e evictOnce) SubResource(name string) client.SubResourceClient {
	sub := e.Client.SubResource(name)
	if name != "eviction" {
		return sub
	}
	return evictOnceWrites{sub, e.evicted}
}

// evictOnceWrites are the evictions of evictOnce.
type evictOnceWrites struct {
	client.SubResourceClient
	evicted *cache.Expiring
}

// Create evicts a pod, unless that has been done.
func (w evictOnceWrites) Create(ctx context.Context, pod, eviction client.Object, opts ...client.SubResourceCreateOption) error {
	if _, done := w.evicted.Get(pod.GetUID()); done {
		return apierrors.NewNotFound(corev1.Resource("pods"), pod.GetName())
	}
	err := w.SubResourceClient.Create(ctx, pod, eviction, opts...)
	if err == nil {
		w.evicted.Set(pod.GetUID(), nil, evictedFor)
	}
	return err
}
