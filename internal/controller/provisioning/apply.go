package provisioning

import (
	"context"
	"fmt"
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

// result is what became of a draft: created, rejected, refused, or an error.
type result struct {
	draft    *draft
	rejected *rejection
	// refused says in words why it must not be bought now, empty when it may.
	refused string
	err     error
}

func (r *result) created() bool { return r.rejected == nil && r.refused == "" && r.err == nil }

// applier creates the claims of a plan, each of them only if it still holds.
type applier struct {
	clients Clients
	cluster Cluster
	clock   clock.Clock
	newID   func(n int) string
	// wants is how many pods a workload wants now, by its UID.
	wants func(uid string) int
	// expected is told of every claim that was created, or may have been.
	expected *expectedClaims
}

// apply verifies and creates drafts in parallel. What went wrong is in the results,
// one per draft and in their order. A lenient round creates a claim while any of its
// pods waits.
func (a *applier) apply(ctx context.Context, in *planInputs, drafts []*draft, lenient bool) []result {
	results := make([]result, len(drafts))
	v, err := newVerifier(ctx, a, in, drafts, lenient)
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
				r.err = a.create(ctx, d)
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
func (a *applier) create(ctx context.Context, d *draft) error {
	var err error
	for try := range createTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-a.clock.After(createPause << (try - 1)):
			}
		}
		created := d.claim.DeepCopy()
		err = a.clients.Cached.Create(ctx, created)
		if apierrors.IsAlreadyExists(err) {
			created, err = a.adopt(ctx, d)
		}
		if err == nil {
			d.claim = created
			a.expected.add(created)
			a.cluster.UpdateNodeClaim(created)
			return nil
		}
		if !nodeclaims.MaybeCreated(err) {
			return fmt.Errorf("creating NodeClaim %s: %w", d.claim.Name, err)
		}
	}
	// The claim may exist. Until that is known it counts as capacity: a pod that
	// waits a little longer is better than a node bought twice.
	a.expected.add(d.claim)
	return fmt.Errorf("creating NodeClaim %s, which may exist by now: %w", d.claim.Name, err)
}

// adopt returns the claim of the draft's name if it is the draft's: then an
// earlier try had succeeded. Where another claim has the name, the draft gets a new
// one.
func (a *applier) adopt(ctx context.Context, d *draft) (*karpv1.NodeClaim, error) {
	existing := &karpv1.NodeClaim{}
	if err := a.clients.Live.Get(ctx, client.ObjectKeyFromObject(d.claim), existing); err != nil {
		return nil, err
	}
	if existing.Annotations[v1beta1.AnnotationPlan] == d.claim.Annotations[v1beta1.AnnotationPlan] {
		return existing, nil
	}
	d.claim.Name = d.pool + "-" + a.newID(5)
	return nil, fmt.Errorf("the name %s is taken", existing.Name)
}
