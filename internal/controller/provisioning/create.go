package provisioning

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
)

// createAtOnce bounds the claims that are created in parallel.
const createAtOnce = 32

// result is what became of a draft: created, rejected, or an error.
type result struct {
	draft    *draft
	rejected *rejection
	err      error
}

func (r *result) created() bool { return r.rejected == nil && r.err == nil }

// apply verifies and creates drafts in parallel. What went wrong is in the
// results, one per draft and in their order.
func (l *Loop) apply(ctx context.Context, b *basis, drafts []*draft, lenient bool) []result {
	results := make([]result, len(drafts))
	v, err := newVerifier(ctx, l.Clients.Cached, b, drafts, lenient)
	if err != nil {
		for i, d := range drafts {
			results[i] = result{draft: d, err: err}
		}
		return results
	}
	var group errgroup.Group
	group.SetLimit(createAtOnce)
	for i, d := range drafts {
		results[i].draft = d
		group.Go(func() error {
			r := &results[i]
			if r.rejected, r.err = v.verify(ctx, d); r.created() {
				r.err = l.create(ctx, d)
			}
			return nil
		})
	}
	_ = group.Wait() // every error is in its result
	return results
}

// A create whose answer was lost is tried again this often, with these pauses.
const createTries = 4

const createPause = 200 * time.Millisecond

// create creates a claim exactly once, or returns an error. Its name was chosen
// here, so asking again after a lost answer finds the claim instead of making a
// second one.
func (l *Loop) create(ctx context.Context, d *draft) error {
	var err error
	for try := range createTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-l.Clock.After(createPause << (try - 1)):
			}
		}
		created := d.claim.DeepCopy()
		err = l.Clients.Cached.Create(ctx, created)
		if apierrors.IsAlreadyExists(err) {
			created, err = l.adopt(ctx, d)
		}
		if err == nil {
			d.claim = created
			l.expected.add(created)
			l.Cluster.UpdateNodeClaim(created)
			return nil
		}
		if !nodeclaims.MaybeCreated(err) {
			return fmt.Errorf("creating NodeClaim %s: %w", d.claim.Name, err)
		}
	}
	// Nobody knows whether it exists. Until that is known it counts as capacity: a
	// pod that waits a little longer is better than a machine bought twice.
	l.expected.add(d.claim)
	return fmt.Errorf("creating NodeClaim %s, which may exist by now: %w", d.claim.Name, err)
}

// adopt returns the claim of the draft's name if it is the draft's: then an
// earlier try had succeeded. A stranger of the same name gets out of the way by
// a new name.
func (l *Loop) adopt(ctx context.Context, d *draft) (*karpv1.NodeClaim, error) {
	existing := &karpv1.NodeClaim{}
	if err := l.Clients.Live.Get(ctx, client.ObjectKeyFromObject(d.claim), existing); err != nil {
		return nil, err
	}
	if existing.Annotations[v1beta1.AnnotationPlan] == d.claim.Annotations[v1beta1.AnnotationPlan] {
		return existing, nil
	}
	d.claim.Name = d.pool + "-" + l.NewID(5)
	return nil, fmt.Errorf("the name %s is taken", existing.Name)
}

// expectations remembers the claims that were created and that the informers
// have not delivered yet. The mirror counts them as capacity; this finds out
// about those that the informers will never deliver.
type expectations struct {
	clients Clients
	mirror  Mirror
	cluster Cluster
	clock   clock.Clock

	mu    sync.Mutex
	since map[string]time.Time
}

// observeWithin is how far the informers may lag before a claim is looked up in
// the API server itself.
const observeWithin = 5 * time.Second

func newExpectations(cfg Config) *expectations {
	return &expectations{clients: cfg.Clients, mirror: cfg.Mirror, cluster: cfg.Cluster, clock: cfg.Clock, since: map[string]time.Time{}}
}

func (e *expectations) add(claim *karpv1.NodeClaim) {
	e.mirror.Expect(claim)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since[claim.Name] = e.clock.Now()
}

// settle drops the claims that have been observed, and those that do not exist:
// deleted before the informers saw them, or never created.
func (e *expectations) settle(ctx context.Context) error {
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
