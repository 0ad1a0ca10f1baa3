package provisioning

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// expectedClaims are the claims that were created and that the informers have not
// delivered yet. The mirror counts them as capacity; this finds out about those
// that the informers will never deliver. It is safe for concurrent use.
type expectedClaims struct {
	clients Clients
	mirror  Mirror
	cluster Cluster
	clock   clock.Clock

	mu sync.Mutex
	// since is when a claim was created, by its name. A claim is in here from its
	// creation until settle finds it in the cache, or nowhere.
	since map[string]time.Time
}

// observeWithin is how far the informers may lag before a claim is looked up in
// the API server itself.
const observeWithin = 5 * time.Second

func newExpectedClaims(cfg *Config) *expectedClaims {
	return &expectedClaims{clients: cfg.Clients, mirror: cfg.Mirror, cluster: cfg.Cluster, clock: cfg.Clock, since: map[string]time.Time{}}
}

func (e *expectedClaims) add(claim *karpv1.NodeClaim) {
	e.mirror.Expect(claim)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since[claim.Name] = e.clock.Now()
}

// settle drops the claims that have been observed, and those that do not exist:
// deleted before the informers saw them, or never created.
func (e *expectedClaims) settle(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, since := range e.since {
		claim, key := &karpv1.NodeClaim{}, client.ObjectKey{Name: name}
		err := e.clients.Cached.Get(ctx, key, claim)
		if err == nil {
			delete(e.since, name)
			continue
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading NodeClaim %s: %w", name, err)
		}
		if e.clock.Since(since) < observeWithin {
			continue
		}
		switch err := e.clients.Live.Get(ctx, key, claim); {
		case apierrors.IsNotFound(err):
			e.mirror.Forget(name)
			e.cluster.DeleteNodeClaim(name)
			delete(e.since, name)
		case err != nil:
			return fmt.Errorf("looking up NodeClaim %s, which was created and not seen since: %w", name, err)
		}
	}
	return nil
}
