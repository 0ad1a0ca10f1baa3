package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// recovery finds the commands that an earlier process has begun.
type recovery struct {
	clients Clients
	mirror  Mirror
	marker  *marker
	clock   clock.Clock
}

// restore returns the commands that an earlier process has begun, oldest first.
// Those whose replacements all exist are carried on, the others are to be rolled
// back. It reads past the caches, which may not have seen the last writes.
func (r *recovery) restore(ctx context.Context) ([]*command, error) {
	var claims karpv1.NodeClaimList
	if err := r.clients.Live.List(ctx, &claims); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	logger := log.FromContext(ctx)
	byID := map[string]*command{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !claim.DeletionTimestamp.IsZero() {
			continue
		}
		record, err := recordOf(claim)
		switch {
		case err != nil:
			logger.Error(err, "a command cannot be read and is rolled back", "NodeClaim", claim.Name)
			r.marker.clear(ctx, Removed{Claim: claim.Name, Node: claim.Status.NodeName})
		case record != nil && byID[record.ID] == nil:
			byID[record.ID] = &command{Record: *record}
		case record != nil && !slices.ContainsFunc(byID[record.ID].Remove, func(n Removed) bool { return n.Claim == claim.Name }):
			// This node was released from a partial command, but for its annotation.
			r.marker.clear(ctx, Removed{Claim: claim.Name, Node: claim.Status.NodeName})
		case record == nil && claim.StatusConditions().IsTrue(karpv1.ConditionTypeDisruptionReason) &&
			!claim.StatusConditions().Get(karpv1.ConditionTypeRebooting).IsTrue(): // of a reboot it is the repair's
			r.marker.clear(ctx, Removed{Claim: claim.Name, Node: claim.Status.NodeName})
		}
	}
	var found []*command
	for _, c := range byID {
		if err := r.resume(ctx, c); err != nil {
			return nil, err
		}
		found = append(found, c)
		logger.Info("found a command under way", "command", c.ID, "reason", string(c.Reason), "nodes", names(c.Remove),
			"replacements", replacementNames(c.Replace), "takenBack", failed(c))
	}
	slices.SortFunc(found, func(a, b *command) int {
		if c := a.Begun.Compare(b.Begun); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return found, nil
}

// resume fails a found command whose replacements are not all there.
func (r *recovery) resume(ctx context.Context, c *command) error {
	for _, n := range slices.Clone(c.Replace) {
		claim := &karpv1.NodeClaim{}
		err := r.clients.Live.Get(ctx, client.ObjectKey{Name: n.Claim}, claim)
		switch {
		case apierrors.IsNotFound(err):
			lose(ctx, c, n.Claim, "does not exist")
		case err != nil:
			return fmt.Errorf("reading replacement %s: %w", n.Claim, err)
		default:
			r.mirror.Expect(claim)
		}
	}
	return nil
}

// failed is why a command is being rolled back, or "".
func failed(c *command) string {
	if c.failure == nil {
		return ""
	}
	return c.failure.message
}
