package disruption

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

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

		ConsolidateFrom: l.consolidateFrom(ctx, started),
	})
	if err != nil {
		return fmt.Errorf("stating the fleet: %w", err)
	}
	l.judge(ctx, input.Fleet)
	bound(input.Fleet)
	moves, err := careful(func() *model.Commands { return l.Plan(input.Fleet) })
	if err != nil {
		l.last.at = l.Clock.Now() // not at once again
		return err
	}
	l.last.at, l.last.took, l.last.revision = l.Clock.Now(), l.Clock.Since(started), revision
	l.last.due = earliest(moves.Kept, started)
	l.Metrics.Decided(input.Fleet, moves, countUnconsolidatable(moves), l.last.took)
	l.reportStays(ctx, input, moves)
	chosen := moves.Commands
	if l.postpones(moves, started) {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(mv model.Command) bool { return mv.Reason == model.DisruptUnderutilized })
	}
	begun := l.records(input, chosen, pools)
	l.wave.ride(input.Fleet, begun, started)
	l.reportDecision(ctx, input, moves, begun)
	l.moves = append(l.moves, begun...)
	l.proceed(ctx)
	return nil
}

// nodesAtMost bounds the nodes of one NodePool that one decision consolidates. What
// a move is made of is written on each of its NodeClaims, and Kubernetes keeps no
// more than 256 KiB there.
const nodesAtMost = 300

func bound(f *model.DisruptionProblem) {
	for i := range f.Policies {
		if allowed, limited := f.Policies[i].Allowed[model.DisruptUnderutilized]; limited {
			f.Policies[i].Allowed[model.DisruptUnderutilized] = min(allowed, nodesAtMost)
		}
	}
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

// consolidateFrom is when consolidation may happen, zero when it may now. While
// that is not known it waits.
func (l *Loop) consolidateFrom(ctx context.Context, now time.Time) time.Time {
	if l.Window == nil {
		return time.Time{}
	}
	open, until, err := l.Window(ctx, now)
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "consolidation waits: the maintenance window is not known")
		return now.Add(askWindowEvery)
	case open:
		return time.Time{}
	case until.IsZero():
		return now.Add(askWindowEvery) // none is in sight
	}
	return until
}

// askWindowEvery is how soon an unknown window is asked for again.
const askWindowEvery = time.Minute

// underWay are the nodes of the moves that have begun.
func (l *Loop) underWay() map[string]bool {
	out := map[string]bool{}
	for _, m := range l.moves {
		for _, r := range slices.Concat(m.Remove, m.let) {
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
func earliest(stays []model.KeptNode, now time.Time) time.Time {
	var due time.Time
	for i := range stays {
		if u := stays[i].Until; u.After(now) && (due.IsZero() || u.Before(due)) {
			due = u
		}
	}
	return due
}

func (l *Loop) reportDecision(ctx context.Context, input *fleet.DisruptionInput, moves *model.Commands, begun []*move) {
	if len(begun) == 0 {
		return
	}
	logger := log.FromContext(ctx)
	logger.Info("decided what to give back", "nodes", len(input.Problem.Nodes), "moves", len(begun), "evictions", moves.Evictions,
		"before", moves.Before.String(), "after", moves.After.String(), "took", l.last.took.String())
	for _, m := range begun {
		logger.Info("giving nodes back", "move", m.ID, "reason", string(m.Reason), "nodes", names(m.Remove),
			"replacements", replacementNames(m.Replace), "savingPerHour", m.Saving, "evictions", m.Evictions)
	}
}

// careful asks the planner. The process that gives machines back buys them, too:
// a mistake in deciding what may go must not end it.
func careful[T any](ask func() T) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the planner failed on this fleet, which is a mistake in nap to be reported; nothing is given back meanwhile: %v\n%s", p, debug.Stack())
		}
	}()
	return ask(), nil
}
