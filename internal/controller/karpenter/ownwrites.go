package karpenter

import (
	"context"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/karpenter/pkg/apis"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	claimlifecycle "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
)

// lifecycleController is Karpenter's lifecycle controller of NodeClaims, which looks at a
// NodeClaim only once the cache has what the controller itself has written on it.
//
// Karpenter waits for a second after each write instead (v1.15.0). An API server that is busy, as
// when hundreds of nodes join, tells of a write much later. The controller then launches,
// registers and initializes a NodeClaim again and again, and each time replaces the conditions by
// those that it has read, also those that others have written since.
type lifecycleController struct {
	*claimlifecycle.Controller
	writes *ownWrites
}

// Register adds the controller to the manager, as Karpenter does.
func (c lifecycleController) Register(ctx context.Context, m manager.Manager) error {
	return c.Controller.Register(ctx, clientManager{m, freshClaims{m.GetClient(), c.writes}})
}

// clientManager is a manager that hands out another client.
type clientManager struct {
	manager.Manager
	client client.Client
}

func (m clientManager) GetClient() client.Client { return m.client }

// seenWithin is how long a write is waited for: an API server that was restored from a backup has
// lost it.
const seenWithin = 2 * time.Minute

// ownWrites is a client that remembers of each NodeClaim which version it has written, until that
// is seen. It is safe for concurrent use.
type ownWrites struct {
	client.Client
	clock clock.PassiveClock

	mu sync.Mutex
	// written are by the NodeClaim's name.
	written map[string]written
}

// written is the newest resource version that was written, and when.
type written struct {
	version uint64
	at      time.Time
}

func newOwnWrites(kube client.Client, clk clock.PassiveClock) *ownWrites {
	return &ownWrites{Client: kube, clock: clk, written: map[string]written{}}
}

// Patch is that of [client.Client].
func (w *ownWrites) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return w.remember(o, w.Client.Patch(ctx, o, p, opts...))
}

// Status writes the status of objects.
func (w *ownWrites) Status() client.SubResourceWriter {
	return ownStatusWrites{w.Client.Status(), w}
}

// ownStatusWrites is what ownWrites is for statuses.
type ownStatusWrites struct {
	client.SubResourceWriter
	writes *ownWrites
}

// Patch is that of [client.SubResourceWriter].
func (w ownStatusWrites) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return w.writes.remember(o, w.SubResourceWriter.Patch(ctx, o, p, opts...))
}

// remember takes in the version of a NodeClaim that was written without an error.
func (w *ownWrites) remember(o client.Object, err error) error {
	version, known := versionOf(o)
	if _, is := o.(*v1.NodeClaim); !is || err != nil || !known {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if version > w.written[o.GetName()].version {
		w.written[o.GetName()] = written{version, w.clock.Now()}
	}
	return nil
}

// missing reports whether a NodeClaim, as it was read, lacks what was written on it. What is
// seen is forgotten.
func (w *ownWrites) missing(claim *v1.NodeClaim) bool {
	version, known := versionOf(claim)
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.written[claim.Name]; known && version < last.version && w.clock.Since(last.at) < seenWithin {
		return true
	}
	delete(w.written, claim.Name)
	return false
}

// forget is for a NodeClaim that is gone.
func (w *ownWrites) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, name)
}

// versionOf is the resource version of an object. Those of one kind are numbers that grow
// (Kubernetes enhancement 5504); false where it is none.
func versionOf(o client.Object) (uint64, bool) {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return version, err == nil
}

// freshClaims reads NodeClaims for a controller that is run for each change of one: what lacks a
// write is as if it were not there, for the change that brings it is still to come.
type freshClaims struct {
	client.Client
	writes *ownWrites
}

// Get is that of [client.Client].
func (c freshClaims) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, opts...)
	claim, is := o.(*v1.NodeClaim)
	switch {
	case !is:
		return err
	case apierrors.IsNotFound(err):
		c.writes.forget(key.Name)
	case err == nil && c.writes.missing(claim):
		return apierrors.NewNotFound(schema.GroupResource{Group: apis.Group, Resource: "nodeclaims"}, key.Name)
	}
	return err
}
