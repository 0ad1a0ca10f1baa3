package disruption

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclaims"
	"github.com/nodeautoprovision/nap/internal/model"
)

// writesAtOnce bounds the requests that one move has under way.
const writesAtOnce = 16

// begin marks the move's nodes and creates its replacements. All of it may be
// repeated; an error leaves the move where it was.
func (l *Loop) begin(ctx context.Context, m *move) error {
	if !m.marked.IsZero() {
		return nil
	}
	text := m.text()
	// The record comes before the taint and the taint before the machines: what
	// is seen by whoever comes after a crash explains what follows.
	for _, step := range []func(context.Context, Removed) error{
		func(ctx context.Context, r Removed) error { return l.annotate(ctx, r.Claim, text) },
		func(ctx context.Context, r Removed) error { return l.taint(ctx, r.Node, true) },
		func(ctx context.Context, r Removed) error { return l.condition(ctx, r.Claim, string(m.Reason)) },
	} {
		if err := l.each(ctx, m.Remove, step); err != nil {
			return err
		}
	}
	if m.FromTemplate {
		for _, r := range m.Remove {
			l.Cluster.PendingDisruption(r.Pool, r.Claim, true)
		}
	}
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for _, r := range m.Replace {
		if draft := m.drafts[r.Claim]; draft != nil {
			group.Go(func() error { return l.create(ctx, m, draft) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	m.marked, m.drafts = l.Clock.Now(), nil
	l.Metrics.Begun(m.measured())
	return nil
}

// each does one thing for every node of a move, in parallel, and returns all
// errors.
func (l *Loop) each(ctx context.Context, nodes []Removed, do func(context.Context, Removed) error) error {
	errs := make([]error, len(nodes))
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for i, n := range nodes {
		group.Go(func() error {
			errs[i] = do(ctx, n)
			return nil
		})
	}
	_ = group.Wait() // the errors are kept one by one
	return errors.Join(errs...)
}

// create creates a replacement. Its name was chosen before, so that repeating it
// makes no second one.
func (l *Loop) create(ctx context.Context, m *move, draft *karpv1.NodeClaim) error {
	claim := draft.DeepCopy()
	err := l.Clients.Cached.Create(ctx, claim)
	if apierrors.IsAlreadyExists(err) {
		err = l.Clients.Live.Get(ctx, client.ObjectKeyFromObject(draft), claim)
		if err == nil && claim.Annotations[v1beta1.AnnotationReplaces] != m.ID {
			return &refusal{fmt.Errorf("creating replacement %s: the name is taken", draft.Name)}
		}
	}
	switch {
	case err == nil:
		l.Mirror.Expect(claim)
		l.Cluster.UpdateNodeClaim(claim)
		l.Recorder.Publish(events.Launching(claim, string(m.Reason)))
		l.Metrics.ReplacementCreated(m.Reason, claim.Labels[karpv1.NodePoolLabelKey])
		return nil
	case !nodeclaims.MaybeCreated(err):
		return &refusal{fmt.Errorf("creating replacement %s: %w", draft.Name, err)}
	}
	return fmt.Errorf("creating replacement %s: %w", draft.Name, err)
}

// refusal is an error that repeating does not cure.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// fail begins to take a move back.
func (m *move) fail(cause model.Reason, format string, args ...any) {
	if m.failed == "" {
		m.failed, m.cause = fmt.Sprintf(format, args...), cause
	}
}
