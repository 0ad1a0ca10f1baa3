package disrupt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/provision"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// decide looks at the whole fleet once and begins the moves that are worth
// making. The NodePools are read before the snapshot is taken: a change in
// between is then seen by the next decision.
func (l *Loop) decide(ctx context.Context) error {
	pools, err := l.pools(ctx)
	if err != nil {
		return err
	}
	started := l.Clock.Now()
	revision := l.Mirror.Revision()
	input, err := l.Mirror.Snapshot().Fleet(ctx, l.Catalogs, fleet.DisruptionOptions{
		Options: fleet.Options{Now: started, Policy: model.Policy{
			IgnorePreferences: l.Settings.IgnorePreferences,
			RelaxMinValues:    l.Settings.RelaxMinValues,
			Budget:            l.Settings.Budget,
			Elapsed:           func() time.Duration { return l.Clock.Since(started) },
		}},
		Terms:    l.Settings.Terms,
		Marked:   l.underWay(),
		Promised: l.promised(),
		Planned:  l.planned(nil),
		Resting:  l.resting(started),
	})
	if err != nil {
		return fmt.Errorf("stating the fleet: %w", err)
	}
	moves := l.Plan(input.Fleet)
	l.last.at, l.last.took, l.last.revision = l.Clock.Now(), l.Clock.Since(started), revision
	l.last.due = earliest(moves.Stays, started)
	l.Metrics.decided(input.Fleet, moves, l.last.took)
	l.reportStays(ctx, input, moves)
	begun := l.records(input, moves, pools)
	l.reportDecision(ctx, input, moves, begun)
	l.moves = append(l.moves, begun...)
	l.proceed(ctx)
	return nil
}

func (l *Loop) pools(ctx context.Context) (map[string]*karpv1.NodePool, error) {
	var list karpv1.NodePoolList
	if err := l.Clients.Cached.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	pools := map[string]*karpv1.NodePool{}
	for i := range list.Items {
		pools[list.Items[i].Name] = &list.Items[i]
	}
	return pools, nil
}

// underWay are the nodes of the moves that have begun.
func (l *Loop) underWay() map[string]bool {
	out := map[string]bool{}
	for _, m := range l.moves {
		for _, r := range m.Remove {
			out[r.Node] = true
		}
	}
	return out
}

// promised are the replacements of the moves that have begun, until their nodes
// are drained.
func (l *Loop) promised() map[string]bool {
	out := map[string]bool{}
	for _, m := range slices.Concat(l.moves, l.settling) {
		for _, r := range m.Replace {
			out[r.Claim] = true
		}
	}
	return out
}

// resting are the nodes that are left alone, and until when.
func (l *Loop) resting(now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for node, r := range l.rests {
		switch {
		case r.until.After(now):
			out[node] = r.until
		case now.Sub(r.until) > restAtMost: // forgiven
			delete(l.rests, node)
		}
	}
	return out
}

// earliest is the next moment at which a node that stays may be looked at anew.
func earliest(stays []model.Stay, now time.Time) time.Time {
	var due time.Time
	for i := range stays {
		if u := stays[i].Until; u.After(now) && (due.IsZero() || u.Before(due)) {
			due = u
		}
	}
	return due
}

// records writes moves in names, with the claims that are to be created.
func (l *Loop) records(input *fleet.DisruptionInput, moves *model.Moves, pools map[string]*karpv1.NodePool) []*move {
	p := input.Problem
	var fresh []model.NewNode
	for i := range moves.Moves {
		fresh = append(fresh, moves.Moves[i].New...)
	}
	writer := provision.NewWriter(p, fresh, pools)
	var out []*move
	for i := range moves.Moves {
		mv := &moves.Moves[i]
		m := &move{Record: Record{
			ID: l.NewID(8), Reason: mv.Reason, Begun: l.Clock.Now().UTC(), FromTemplate: mv.FromTemplate,
			Saving: mv.Saving.Dollars(), Evictions: mv.Evictions,
		}, drafts: map[string]*karpv1.NodeClaim{}}
		for _, n := range mv.Nodes {
			node := &p.Nodes[n]
			m.Remove = append(m.Remove, Removed{Claim: node.Claim, Node: node.Name, Pool: node.Pool})
		}
		if l.draft(m, p, mv, writer, pools) {
			m.homes = homesOf(input, mv, m)
			out = append(out, m)
		}
	}
	return out
}

// draft writes the claims of a move's replacements. It reports false when a
// NodePool went between the two readings; the move is then decided anew.
func (l *Loop) draft(m *move, p *model.Problem, mv *model.Move, writer *provision.Writer, pools map[string]*karpv1.NodePool) bool {
	add := func(claim *karpv1.NodeClaim, r Replacement) {
		claim.Annotations[AnnotationReplaces] = m.ID
		m.Replace = append(m.Replace, r)
		m.drafts[claim.Name] = claim
	}
	if mv.FromTemplate {
		for _, r := range m.Remove {
			pool := pools[r.Pool]
			if pool == nil {
				return false
			}
			name := pool.Name + "-" + l.NewID(5)
			add(provision.FromTemplate(pool, name), Replacement{Claim: name, Pool: pool.Name})
		}
		return true
	}
	for i := range mv.New {
		pool := &p.Pools[mv.New[i].Pool]
		name := pool.Name + "-" + l.NewID(5)
		claim, offerings := writer.Write(&mv.New[i], name)
		if claim == nil {
			return false
		}
		t := &p.Catalogs[pool.Catalog].InstanceTypes[offerings[0].InstanceType]
		o := &t.Offerings[offerings[0].Offering]
		add(claim, Replacement{Claim: name, Pool: pool.Name, InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType})
	}
	return true
}

func (l *Loop) reportDecision(ctx context.Context, input *fleet.DisruptionInput, moves *model.Moves, begun []*move) {
	if len(begun) == 0 {
		return
	}
	l.last.wave = l.last.at
	logger := log.FromContext(ctx)
	logger.Info("decided what to give back", "nodes", len(input.Problem.Nodes), "moves", len(begun), "evictions", moves.Evictions,
		"before", moves.Before.String(), "after", moves.After.String(), "took", l.last.took.String())
	for _, m := range begun {
		logger.Info("giving nodes back", "move", m.ID, "reason", string(m.Reason), "nodes", names(m.Remove),
			"replacements", replacementNames(m.Replace), "savingPerHour", m.Saving, "evictions", m.Evictions)
	}
}
