package purchasebackoff

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// Guard is a cloud that holds NodeClaims back which no plan of nap's made: those of static
// NodePools, and of people. Karpenter makes the ones of static NodePools, and makes another as
// soon as one ends. A NodeClaim that is held back stays, says why, and is tried again by
// Karpenter, which replaces it after five minutes.
type Guard struct {
	karpcloud.CloudProvider
	kube          client.Reader
	clock         clock.Clock
	registrations *Registrations
	// refusals count the claims in a row, by static NodePool, for which nothing was to be had.
	refusals *Breaker
}

// NewGuard returns a cloud that launches nothing for such claims while machines of their class do
// not register, or while Azure refuses all that their static NodePool may buy.
func NewGuard(cloud karpcloud.CloudProvider, kube client.Reader, registrations *Registrations, clk clock.Clock) *Guard {
	return &Guard{
		CloudProvider: cloud, kube: kube, clock: clk, registrations: registrations, refusals: NewBreaker(launchPolicy(), clk),
	}
}

// Create launches the machine of a claim, or says why the claim has to wait.
func (g *Guard) Create(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	if claim.Annotations[v1beta1.AnnotationPlan] != "" || claim.Annotations[v1beta1.AnnotationReplaces] != "" {
		return g.CloudProvider.Create(ctx, claim)
	}
	pool, err := g.staticPool(ctx, claim)
	if err != nil {
		return nil, err
	}
	if pool != "" {
		// Before the other question, whose answer may be that this claim is the one that probes.
		if verdict, record := g.refusals.Ask(pool, ""); verdict == Open {
			return nil, held(refusedText(&record))
		}
	}
	if record, is := g.registrations.hold(claim); is {
		return nil, held(Text(&record))
	}
	begin := g.clock.Now()
	created, err := g.CloudProvider.Create(ctx, claim)
	switch {
	case pool == "":
	case err == nil:
		g.refusals.Succeeded(pool)
	case karpcloud.IsInsufficientCapacityError(err):
		g.refusals.Failed(pool, Failure{Purchase: claim.Name, Pool: pool, Why: err.Error()}, begin, "")
	}
	return created, err
}

// held is the error with which Karpenter keeps a claim and writes on it why it has no machine.
func held(text string) error { return karpcloud.NewCreateError(errors.New(text), ReasonPaused, text) }

// staticPool is the name of a claim's NodePool where that is a static one, or "".
func (g *Guard) staticPool(ctx context.Context, claim *karpv1.NodeClaim) (string, error) {
	name := claim.Labels[karpv1.NodePoolLabelKey]
	if name == "" {
		return "", nil
	}
	pool := &karpv1.NodePool{}
	err := g.kube.Get(ctx, client.ObjectKey{Name: name}, pool)
	switch {
	case apierrors.IsNotFound(err), err == nil && pool.Spec.Replicas == nil:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading NodePool %s of NodeClaim %s, which is tried again: %w", name, claim.Name, err)
	}
	return name, nil
}

func refusedText(r *Record) string {
	return fmt.Sprintf("nothing is bought for static NodePool %s before %s, since Azure refused all that it may buy; the last: %s",
		r.Key, r.Until.UTC().Format(time.RFC3339), r.Last[len(r.Last)-1].Why)
}

// hold reports whether the machine of a claim that no plan made may not be launched now, with the
// record that says so. Of those that probe it lets one through at a time.
func (r *Registrations) hold(c *karpv1.NodeClaim) (Record, bool) {
	if c.Spec.NodeClassRef == nil {
		return Record{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looked { // with engine karpenter nothing ever looks
		return Record{}, false
	}
	m := r.machines[c.Name]
	if m == nil {
		m = r.add(c, r.clock.Now())
	}
	m.held = true // it is not on its way yet, and keeps itself from nothing
	verdict, record := r.ask(c.Spec.NodeClassRef.Name)
	m.held = verdict == Open
	if verdict == Probe {
		m.made = r.clock.Now() // it was asked for before the last failure, and says something about what came since
	}
	return record, m.held
}
