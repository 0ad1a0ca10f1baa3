package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpevents "sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/model"
)

const (
	// replaceWithin is how long replacements may take to become ready, as in
	// Karpenter. Its nodes take no pods meanwhile.
	replaceWithin = 10 * time.Minute
	// beginWithin is how long marking nodes and creating replacements may take, from the
	// first try on: nothing new is decided meanwhile.
	beginWithin = 30 * time.Second
	// observeWithin is how far the informers may lag before a claim is looked up
	// in the API server itself.
	observeWithin = 5 * time.Second
)

// progress is how far a command has come in one pass.
type progress int

const (
	// waiting commands are looked at again in the next pass.
	waiting progress = iota
	// ready commands have their replacements; their pods may be evicted.
	ready
	// over is a command that is done or rolled back.
	over
)

// executor carries single commands on up to the moment of acting, and rolls them
// back. All of it may be repeated. It has no state of its own; different commands
// may be carried on at the same time.
type executor struct {
	marker       *marker
	replacements *replacements
	mirror       Mirror
	cluster      Cluster
	recorder     karpevents.Recorder
	metrics      *metrics.Disruption
	clock        clock.Clock
}

// step carries one command on up to the moment of acting.
func (e *executor) step(ctx context.Context, c *command) (progress, error) {
	if c.failure != nil {
		c.Remove, c.released = append(c.Remove, c.released...), nil
		if err := e.rollBack(ctx, c); err != nil {
			return waiting, fmt.Errorf("rolling the command back: %w", err)
		}
		return over, nil
	}
	if len(c.released) > 0 {
		if err := e.release(ctx, c); err != nil {
			return waiting, fmt.Errorf("releasing nodes of the command: %w", err)
		}
	}
	left, err := e.left(ctx, c)
	if err != nil {
		return waiting, err
	}
	switch {
	case len(left) == 0:
		return over, nil // everything goes already
	case c.drain != nil:
		return waiting, nil
	}
	err = e.begin(ctx, c)
	var no *refusal
	switch {
	case errors.As(err, &no):
		c.fail(model.ReasonUnavailable, "%v", no)
	case err != nil && e.clock.Since(c.tried) > beginWithin:
		c.fail(model.ReasonMoveFailed, "%v", err)
	case errors.Is(err, errUnobserved):
		return waiting, nil
	case err != nil:
		return waiting, err
	case e.clock.Since(c.marked) > observeWithin && untainted(&c.Record, e.mirror.Snapshot()) != "":
		c.fail(model.ReasonMoveFailed, "the taint of %s was taken away", untainted(&c.Record, e.mirror.Snapshot()))
	default:
		there, err := e.replaced(ctx, c)
		if err != nil || !there {
			return waiting, err
		}
		if c.failure == nil && !e.expiresLater(c, left) {
			return ready, nil
		}
	}
	return waiting, nil
}

// expiresLater reports whether nodes of a command that prepares for their expiry have
// not come to their end yet.
func (e *executor) expiresLater(c *command, left []Removed) bool {
	if c.Reason != model.DisruptExpired {
		return false
	}
	s := e.mirror.Snapshot()
	return slices.ContainsFunc(left, func(r Removed) bool {
		claim := s.Claim(r.Claim)
		return claim != nil && claim.ExpireAfter > 0 && claim.Created.Add(claim.ExpireAfter).After(e.clock.Now())
	})
}

// errUnobserved is what begin returns while Karpenter's mirror has not seen yet what was
// written on the claims: for a moment only, so it is no error for people.
var errUnobserved = errors.New("the marks on nodes of a static pool have not been observed")

// begin marks the command's nodes and creates its replacements. An error leaves the
// command where it was.
func (e *executor) begin(ctx context.Context, c *command) error {
	if !c.marked.IsZero() {
		return nil
	}
	if c.tried.IsZero() {
		c.tried = e.clock.Now()
	}
	text := c.text()
	// On each node the record comes before the taint, and the taints of all before the
	// replacements: what the next process finds after a crash explains what follows.
	if err := each(ctx, c.Remove, func(ctx context.Context, r Removed) error {
		return e.marker.mark(ctx, r, text, string(c.Reason))
	}); err != nil {
		return err
	}
	if addsNode(&c.Record) {
		if slices.ContainsFunc(c.Remove, func(r Removed) bool { return !e.cluster.KnowsDisruption(r.Claim) }) {
			return errUnobserved
		}
		for _, r := range c.Remove {
			e.cluster.PendingDisruption(r.Pool, r.Claim, true)
		}
	}
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for _, r := range c.Replace {
		if draft := c.drafts[r.Claim]; draft != nil {
			group.Go(func() error { return e.replacements.create(ctx, &c.Record, draft) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if addsNode(&c.Record) {
		for _, r := range c.Remove {
			e.cluster.Replaced(r.Claim)
		}
	}
	c.marked, c.drafts = e.clock.Now(), nil
	e.metrics.Begun(c.measured())
	return nil
}

// left are the nodes of a command whose claims exist and are not being deleted.
func (e *executor) left(ctx context.Context, c *command) ([]Removed, error) {
	var out []Removed
	for _, r := range c.Remove {
		claim, err := e.marker.claim(ctx, r.Claim)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			out = append(out, r)
		}
	}
	return out, nil
}

// replaced reports whether all replacements are there and the mirror has seen
// them. A replacement that is lost, or too late, fails the command or is dropped.
func (e *executor) replaced(ctx context.Context, c *command) (bool, error) {
	snapshot := e.mirror.Snapshot()
	there := true
	for _, r := range slices.Clone(c.Replace) {
		claim, lost, err := e.replacements.find(ctx, &c.Record, r.Claim)
		if lost != "" {
			lose(ctx, c, r.Claim, lost)
		}
		if claim == nil || err != nil {
			return false, err
		}
		if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) {
			e.recorder.Publish(event.WaitingOnReadiness(claim))
			there = false
			continue
		}
		node := snapshot.Node(claim.Status.NodeName)
		there = there && node != nil && node.Initialized && node.Ready
	}
	if !there && e.clock.Since(c.Begun) > replaceWithin {
		return false, e.dropLate(ctx, c)
	}
	return there, nil
}

// dropLate drops the replacements that are not ready, if others are.
func (e *executor) dropLate(ctx context.Context, c *command) error {
	for _, r := range slices.Clone(c.Replace) {
		if e.replacements.initialized(ctx, r.Claim) {
			continue
		}
		why := "not ready after " + model.FormatDuration(replaceWithin)
		if !c.dropReplacement(ctx, r.Claim, why, model.ReasonNotInitialized, fmt.Sprintf("replacement %s was %s", r.Claim, why)) {
			return nil
		}
		if err := e.replacements.dropUnused(ctx, &c.Record, r.Claim); err != nil {
			return err
		}
	}
	return nil
}

// rollBack makes the nodes of a failed command ordinary again and deletes the
// replacements that no pod uses. The record goes last.
func (e *executor) rollBack(ctx context.Context, c *command) error {
	left, err := e.left(ctx, c)
	if err != nil {
		return err
	}
	if err := e.marker.admitPods(ctx, left); err != nil {
		return err
	}
	for _, r := range left {
		if addsNode(&c.Record) {
			e.cluster.PendingDisruption(r.Pool, r.Claim, false)
		}
		e.reportRolledBack(ctx, c, r)
	}
	// Once one of the nodes has gone, its pods need the replacements.
	if len(left) == len(c.Remove) {
		for _, r := range c.Replace {
			if err := e.replacements.dropUnused(ctx, &c.Record, r.Claim); err != nil {
				return err
			}
		}
	}
	return each(ctx, left, func(ctx context.Context, r Removed) error { return e.marker.annotate(ctx, r.Claim, "") })
}

// release makes the released nodes of a partial command ordinary again. The others
// are annotated first: what the next process finds after a crash is what is left of
// the command.
func (e *executor) release(ctx context.Context, c *command) error {
	text := c.text()
	if err := each(ctx, c.Remove, func(ctx context.Context, r Removed) error { return e.marker.annotate(ctx, r.Claim, text) }); err != nil {
		return err
	}
	if err := e.marker.admitPods(ctx, c.released); err != nil {
		return err
	}
	if err := each(ctx, c.released, func(ctx context.Context, r Removed) error { return e.marker.annotate(ctx, r.Claim, "") }); err != nil {
		return err
	}
	c.released = nil
	return nil
}

func (e *executor) reportRolledBack(ctx context.Context, c *command, r Removed) {
	claim, err := e.marker.claim(ctx, r.Claim)
	node := &corev1.Node{}
	if err != nil || claim == nil || e.marker.kube.Get(ctx, client.ObjectKey{Name: r.Node}, node) != nil {
		return
	}
	e.recorder.Publish(event.RolledBack(node, claim, c.failure.message)...)
}
