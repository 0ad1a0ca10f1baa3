package disruption

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// undo makes the nodes of a failed move ordinary again and gives replacements
// back that nobody uses. All of it may be repeated; the record goes last.
func (l *Loop) undo(ctx context.Context, m *move) error {
	left, err := l.left(ctx, m)
	if err != nil {
		return err
	}
	if err := l.open(ctx, left); err != nil {
		return err
	}
	for _, r := range left {
		if m.FromTemplate {
			l.Cluster.PendingDisruption(r.Pool, r.Claim, false)
		}
		l.reportUndone(ctx, m, r)
	}
	// Once one of the nodes has gone, its pods need the replacements.
	if len(left) == len(m.Remove) {
		for _, r := range m.Replace {
			if err := l.giveBack(ctx, m, r.Claim); err != nil {
				return err
			}
		}
	}
	return l.each(ctx, left, func(ctx context.Context, r Removed) error { return l.annotate(ctx, r.Claim, "") })
}

// open lets nodes take pods again.
func (l *Loop) open(ctx context.Context, nodes []Removed) error {
	if err := l.each(ctx, nodes, func(ctx context.Context, r Removed) error { return l.taint(ctx, r.Node, false) }); err != nil {
		return err
	}
	return l.each(ctx, nodes, func(ctx context.Context, r Removed) error { return l.condition(ctx, r.Claim, "") })
}

// giveBack deletes a replacement if it is the move's and no pod has come to it.
func (l *Loop) giveBack(ctx context.Context, m *move, name string) error {
	claim := &karpv1.NodeClaim{}
	if err := l.Clients.Live.Get(ctx, client.ObjectKey{Name: name}, claim); err != nil {
		l.forget(name)
		return ignoreGone(err, "reading replacement "+name)
	}
	if claim.Annotations[v1beta1.AnnotationReplaces] != m.ID || !claim.DeletionTimestamp.IsZero() || inUse(l.Mirror.Snapshot(), claim) {
		return nil
	}
	if err := l.Clients.Cached.Delete(ctx, claim); err != nil {
		return ignoreGone(err, "deleting replacement "+name)
	}
	return nil
}

// forget drops a claim that does not exist from what is expected.
func (l *Loop) forget(name string) {
	l.Mirror.Forget(name)
	l.Cluster.DeleteNodeClaim(name)
}

// inUse reports whether pods run on a claim's node that would need another one,
// or are promised to it.
func inUse(s *fleet.Snapshot, claim *karpv1.NodeClaim) bool {
	node := claim.Status.NodeName
	if node == "" {
		return false
	}
	for p := range s.Pods() {
		if (p.Node == node || p.Node == "" && p.Nominated == node) && !p.Daemon && !p.Static && !p.Terminal {
			return true
		}
	}
	return false
}

func (l *Loop) reportUndone(ctx context.Context, m *move, r Removed) {
	claim, err := l.claim(ctx, r.Claim)
	node := &corev1.Node{}
	if err != nil || claim == nil || l.Clients.Cached.Get(ctx, client.ObjectKey{Name: r.Node}, node) != nil {
		return
	}
	l.Recorder.Publish(events.Blocked(node, claim, fmt.Sprintf("Disruption was taken back: %s", m.failed))...)
}

// strayFor is how long a taint without a move may stand before it is removed.
const strayFor = 10 * time.Second

// releaseStray removes the taint of a disruption from nodes that nobody is
// disrupting: whoever put it there is gone.
func (l *Loop) releaseStray(ctx context.Context) {
	s := l.Mirror.Snapshot()
	underWay := l.underWay()
	now, seen := l.Clock.Now(), map[string]time.Time{}
	for claim := range s.Claims() {
		node := s.Node(claim.NodeName)
		if claim.Leaving || node == nil || !node.Disrupted || node.Deleting || underWay[node.Name] {
			continue
		}
		since, known := l.stray[node.Name]
		if !known {
			since = now
		}
		seen[node.Name] = since
		if now.Sub(since) >= strayFor {
			l.release(ctx, Removed{Claim: claim.Name, Node: node.Name})
		}
	}
	l.stray = seen
}
