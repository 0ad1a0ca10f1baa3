// Package changes counts how often objects of some kinds have changed in the cache. A loop
// that looks at all of them again and again asks the [Counter] first, and looks only when
// something has changed: with a thousand nodes, each look takes milliseconds.
package changes

import (
	"context"
	"fmt"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Counter counts the changes of objects. The zero value counts nothing; it may be read from
// any goroutine.
type Counter struct{ n atomic.Uint64 }

// Of returns a counter of the changes of some kinds, of which the cache begins to watch
// those that it does not yet. It may be called before the cache is started, and does not
// wait for it.
func Of(ctx context.Context, objects cache.Cache, kinds ...client.Object) (*Counter, error) {
	c := &Counter{}
	for _, kind := range kinds {
		informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(c)
		}
		if err != nil {
			return nil, fmt.Errorf("counting the changes of %T: %w", kind, err)
		}
	}
	return c, nil
}

// Count is how many changes there have been. It changes after the cache has the change, so
// that who counts first and reads then misses none.
func (c *Counter) Count() uint64 { return c.n.Load() }

// OnAdd counts an object that is new.
func (c *Counter) OnAdd(any, bool) { c.n.Add(1) }

// OnUpdate counts a change. An object that is delivered again as it was is none.
func (c *Counter) OnUpdate(before, now any) {
	old, isOld := before.(client.Object)
	object, is := now.(client.Object)
	if isOld && is && old.GetResourceVersion() == object.GetResourceVersion() && old.GetResourceVersion() != "" {
		return
	}
	c.n.Add(1)
}

// OnDelete counts an object that is gone.
func (c *Counter) OnDelete(any) { c.n.Add(1) }

var _ toolscache.ResourceEventHandler = (*Counter)(nil)
