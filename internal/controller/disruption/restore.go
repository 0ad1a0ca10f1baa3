package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// restore reads the moves that a predecessor has begun. Those whose replacements
// all exist are carried on, the others are taken back. It reads past the caches,
// which may not have seen the predecessor's last writes.
func (l *Loop) restore(ctx context.Context) error {
	var claims karpv1.NodeClaimList
	if err := l.Clients.Live.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing NodeClaims: %w", err)
	}
	logger := log.FromContext(ctx)
	byID := map[string]*move{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !claim.DeletionTimestamp.IsZero() {
			continue
		}
		record, err := recordOf(claim)
		switch {
		case err != nil:
			logger.Error(err, "a move cannot be read and is taken back", "NodeClaim", claim.Name)
			l.release(ctx, Removed{Claim: claim.Name, Node: claim.Status.NodeName})
		case record != nil && byID[record.ID] == nil:
			byID[record.ID] = &move{Record: *record, since: l.Clock.Now()}
		case record != nil && !slices.ContainsFunc(byID[record.ID].Remove, func(r Removed) bool { return r.Claim == claim.Name }):
			// The move was narrowed and this node let go, but for its annotation.
			l.release(ctx, Removed{Claim: claim.Name, Node: claim.Status.NodeName})
		case record == nil && claim.StatusConditions().IsTrue(karpv1.ConditionTypeDisruptionReason):
			l.release(ctx, Removed{Claim: claim.Name, Node: claim.Status.NodeName})
		}
	}
	l.moves = nil
	for _, m := range byID {
		if err := l.resume(ctx, m); err != nil {
			return err
		}
		l.moves = append(l.moves, m)
		logger.Info("found a move under way", "move", m.ID, "reason", string(m.Reason), "nodes", names(m.Remove),
			"replacements", replacementNames(m.Replace), "takenBack", m.failed)
	}
	slices.SortFunc(l.moves, func(a, b *move) int {
		if c := a.Begun.Compare(b.Begun); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return nil
}

// resume says how a found move goes on.
func (l *Loop) resume(ctx context.Context, m *move) error {
	for _, r := range slices.Clone(m.Replace) {
		claim := &karpv1.NodeClaim{}
		err := l.Clients.Live.Get(ctx, client.ObjectKey{Name: r.Claim}, claim)
		switch {
		case apierrors.IsNotFound(err):
			l.lost(ctx, m, r.Claim, "does not exist")
		case err != nil:
			return fmt.Errorf("reading replacement %s: %w", r.Claim, err)
		default:
			l.Mirror.Expect(claim)
		}
	}
	return nil
}

// release makes a node ordinary that is part of no move.
func (l *Loop) release(ctx context.Context, r Removed) {
	var err error
	if r.Node != "" {
		err = l.taint(ctx, r.Node, false)
	}
	err = errors.Join(err, l.condition(ctx, r.Claim, ""), l.annotate(ctx, r.Claim, ""))
	if logger := log.FromContext(ctx); err == nil {
		logger.Info("freed a node that nobody is disrupting", "Node", r.Node, "NodeClaim", r.Claim)
	} else if ctx.Err() == nil {
		logger.Error(err, "freeing a node that nobody is disrupting failed, trying again", "Node", r.Node, "NodeClaim", r.Claim)
	}
}

func names(nodes []Removed) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Node)
	}
	return out
}

func replacementNames(list []Replacement) []string {
	var out []string
	for _, r := range list {
		out = append(out, strings.TrimSpace(r.Claim+" "+r.InstanceType))
	}
	return out
}
