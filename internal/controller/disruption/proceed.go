package disruption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption/events"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

const (
	// movesAtOnce bounds the moves that are carried on in parallel.
	movesAtOnce = 8
	// replaceWithin is how long replacements may take to become ready. Karpenter
	// gives up a claim that has not registered after 15 minutes.
	replaceWithin = 20 * time.Minute
	// beginWithin is how long marking nodes and ordering replacements may take:
	// nothing new is decided meanwhile.
	beginWithin = 30 * time.Second
	// observeWithin is how far the informers may lag before a claim is looked up
	// in the API server itself.
	observeWithin = 5 * time.Second
	// passWithin is how long objections may take to pass where nothing was bought.
	passWithin = 15 * time.Second
	// restAtLeast and restAtMost bound how long a node rests after its move failed.
	restAtLeast, restAtMost = time.Minute, 15 * time.Minute
)

// progress is how far a move has come in one pass.
type progress int

const (
	waiting progress = iota
	ready
	over
)

// proceed carries every move on as far as it goes now.
func (l *Loop) proceed(ctx context.Context) {
	state := make([]progress, len(l.moves))
	var group errgroup.Group
	group.SetLimit(movesAtOnce)
	for i, m := range l.moves {
		group.Go(func() error {
			var err error
			// What somebody else has just written is tried again at once.
			if state[i], err = l.step(ctx, m); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "carrying a move on failed, trying again", "move", m.ID)
			}
			return nil
		})
	}
	_ = group.Wait() // errors have been told
	var toAct []*move
	for i, m := range l.moves {
		if state[i] == ready {
			toAct = append(toAct, m)
		}
	}
	if len(toAct) > 0 && l.observed() {
		if standing := l.recheck(ctx, toAct); len(standing) > 0 {
			newDrain(l.Mirror.Snapshot(), standing, l.Clock.Now())
		}
	}
	for _, d := range l.drains() {
		for _, m := range l.carry(ctx, d) {
			state[slices.Index(l.moves, m)] = over
		}
	}
	var left []*move
	for i, m := range l.moves {
		if state[i] != over {
			left = append(left, m)
			continue
		}
		l.finish(ctx, m)
		if m.failed == "" {
			l.settling = append(l.settling, m)
		}
	}
	l.moves = left
}

// step carries one move on up to the moment of acting.
func (l *Loop) step(ctx context.Context, m *move) (progress, error) {
	if m.failed != "" {
		m.Remove, m.let = append(m.Remove, m.let...), nil
		if err := l.undo(ctx, m); err != nil {
			return waiting, fmt.Errorf("taking the move back: %w", err)
		}
		return over, nil
	}
	if len(m.let) > 0 {
		if err := l.letGo(ctx, m); err != nil {
			return waiting, fmt.Errorf("letting nodes of the move go: %w", err)
		}
	}
	left, err := l.left(ctx, m)
	if err != nil {
		return waiting, err
	}
	switch {
	case len(left) == 0:
		return over, nil // everything goes already
	case m.drain != nil:
		return waiting, nil
	}
	err = l.begin(ctx, m)
	var no *refusal
	switch {
	case errors.As(err, &no):
		m.fail(model.ReasonUnavailable, "%v", no)
	case err != nil && l.Clock.Since(m.since) > beginWithin:
		m.fail(model.ReasonMoveFailed, "%v", err)
	case err != nil:
		return waiting, err
	case l.Clock.Since(m.marked) > observeWithin && l.untainted(m) != "":
		m.fail(model.ReasonMoveFailed, "the taint of %s was taken away", l.untainted(m))
	default:
		there, err := l.replaced(ctx, m)
		if err != nil || !there {
			return waiting, err
		}
		if m.failed == "" {
			return ready, nil
		}
	}
	return waiting, nil
}

// untainted is a node of the move that has lost its taint, as far as the mirror
// has seen, or none.
func (l *Loop) untainted(m *move) string {
	s := l.Mirror.Snapshot()
	for _, r := range m.Remove {
		claim, node := s.Claim(r.Claim), s.Node(r.Node)
		if claim != nil && !claim.Leaving && node != nil && !node.Deleting && !node.Disrupted {
			return r.Node
		}
	}
	return ""
}

// left are the nodes of a move whose claims exist and do not leave.
func (l *Loop) left(ctx context.Context, m *move) ([]Removed, error) {
	var out []Removed
	for _, r := range m.Remove {
		claim, err := l.claim(ctx, r.Claim)
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
// them. A replacement that is lost, or too late, fails the move.
func (l *Loop) replaced(ctx context.Context, m *move) (bool, error) {
	snapshot := l.Mirror.Snapshot()
	there := true
	for _, r := range slices.Clone(m.Replace) {
		claim, err := l.replacement(ctx, m, r)
		if claim == nil || err != nil {
			return false, err
		}
		if !claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) {
			l.Recorder.Publish(events.WaitingOnReadiness(claim))
			there = false
			continue
		}
		node := snapshot.Node(claim.Status.NodeName)
		there = there && node != nil && node.Initialized && node.Ready
	}
	if !there && l.Clock.Since(m.Begun) > replaceWithin {
		return false, l.late(ctx, m)
	}
	return there, nil
}

// replacement returns a replacement's claim, or nil while it is not observed, or
// when the move has failed by its loss.
func (l *Loop) replacement(ctx context.Context, m *move, r Replacement) (*karpv1.NodeClaim, error) {
	claim, key := &karpv1.NodeClaim{}, client.ObjectKey{Name: r.Claim}
	err := l.Clients.Cached.Get(ctx, key, claim)
	if apierrors.IsNotFound(err) {
		if l.Clock.Since(m.Begun) < observeWithin {
			return nil, nil
		}
		if err = l.Clients.Live.Get(ctx, key, claim); apierrors.IsNotFound(err) {
			l.lost(ctx, m, r.Claim, "could not be launched")
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading replacement %s: %w", r.Claim, err)
	}
	if !claim.DeletionTimestamp.IsZero() {
		l.lost(ctx, m, r.Claim, "is being deleted before it was used")
		return nil, nil
	}
	return claim, nil
}

// gone are the move's claims that are gone or leave.
func (l *Loop) gone(m *move) map[string]bool {
	s, out := l.Mirror.Snapshot(), map[string]bool{}
	for _, r := range m.Remove {
		if c := s.Claim(r.Claim); c == nil || c.Leaving {
			out[r.Claim] = true
		}
	}
	return out
}

// recheck returns the moves that still stand. All of one reason are asked about
// together first, which is as good as one by one and much faster when nothing
// has changed.
func (l *Loop) recheck(ctx context.Context, moves []*move) []*move {
	byReason := map[model.DisruptionReason][]*move{}
	var reasons []model.DisruptionReason
	for _, m := range moves {
		if byReason[m.Reason] == nil {
			reasons = append(reasons, m.Reason)
		}
		byReason[m.Reason] = append(byReason[m.Reason], m)
	}
	var standing []*move
	for _, reason := range reasons {
		group := byReason[reason]
		if len(group) > 1 {
			if found, _ := l.objections(ctx, group); len(found) == 0 {
				standing = append(standing, group...)
				continue
			}
		}
		for _, m := range group {
			found, _ := l.objections(ctx, []*move{m})
			switch {
			case len(found) == 0:
				standing = append(standing, m)
			case passing(found) && l.Clock.Since(m.Begun) <= m.patience():
				l.reportWait(ctx, m, found[0].Message)
			case !l.narrow(ctx, m, found):
				m.fail(found[0].Reason, "%s", found[0].Message)
			}
		}
	}
	return standing
}

// passing reports whether all objections may end by themselves.
func passing(found []consolidate.Objection) bool {
	return !slices.ContainsFunc(found, func(o consolidate.Objection) bool { return !o.Passing })
}

// patience is how long a move waits for objections to pass: not long where
// nothing was bought for it, since its nodes could take pods.
func (m *move) patience() time.Duration {
	if len(m.Replace) == 0 {
		return passWithin
	}
	return replaceWithin
}

// objections asks the fleet of this moment what speaks against moves of one
// reason, and returns that fleet, too, if it could be stated.
func (l *Loop) objections(ctx context.Context, moves []*move) ([]consolidate.Objection, *fleet.DisruptionInput) {
	own, promised, intent := map[string]bool{}, l.promised(), consolidate.Intent{Reason: moves[0].Reason, Homes: map[model.PodRef]string{}}
	for _, m := range moves {
		for _, r := range m.Replace {
			delete(promised, r.Claim)
		}
		in := m.intent(l.gone(m))
		intent.Draining = intent.Draining || m.drain != nil
		intent.Nodes = append(intent.Nodes, in.Nodes...)
		maps.Copy(intent.Homes, m.homes)
		intent.Replacements = append(intent.Replacements, in.Replacements...)
		intent.FromTemplate = intent.FromTemplate || in.FromTemplate
		for _, n := range in.Nodes {
			own[n] = true
		}
		for _, r := range m.let {
			own[r.Node] = true
		}
	}
	now := l.Clock.Now()
	others := l.underWay()
	for n := range own {
		delete(others, n)
	}
	input, err := l.Mirror.Snapshot().Fleet(ctx, l.Catalogs, fleet.DisruptionOptions{
		Options: fleet.Options{Now: now, Policy: model.Policy{
			IgnorePreferences: l.Settings.IgnorePreferences, RelaxMinValues: l.Settings.RelaxMinValues,
		}},
		Terms: l.Settings.Terms, Own: own, Marked: others, Promised: promised, Planned: l.planned(moves),
		ConsolidateFrom: l.consolidateFrom(ctx, now),
	})
	if err != nil {
		return []consolidate.Objection{{Reason: model.ReasonNotInitialized, Message: err.Error()}}, nil
	}
	found, err := careful(func() []consolidate.Objection { return consolidate.Recheck(input.Fleet, intent) })
	if err != nil {
		return []consolidate.Objection{{Reason: model.ReasonMoveFailed, Message: err.Error()}}, nil
	}
	return found, input
}

// delete deletes the claim of one node; Karpenter's termination drains it.
func (l *Loop) delete(ctx context.Context, m *move, r Removed) error {
	claim, err := l.claim(ctx, r.Claim)
	if claim == nil || err != nil {
		return err
	}
	uid := claim.UID
	if err := l.Clients.Cached.Delete(ctx, claim, client.Preconditions{UID: &uid}); err != nil {
		return ignoreGone(err, "deleting NodeClaim "+r.Claim)
	}
	node := &corev1.Node{}
	if err := l.Clients.Cached.Get(ctx, client.ObjectKey{Name: r.Node}, node); err == nil {
		l.Recorder.Publish(events.Terminating(node, claim, string(m.Reason))...)
	}
	l.Metrics.Deleted(m.Reason, claim)
	return nil
}

// finish tells of a move that is over, and lets the nodes of a failed one rest.
func (l *Loop) finish(ctx context.Context, m *move) {
	logger := log.FromContext(ctx).WithValues("move", m.ID, "reason", string(m.Reason), "nodes", names(m.Remove))
	if m.failed == "" {
		l.Metrics.Succeeded(m.measured())
		for _, r := range m.Remove {
			delete(l.rests, r.Node)
		}
		logger.Info("gave nodes back", "savingPerHour", m.Saving, "evictions", m.Evictions, "took", l.Clock.Since(m.Begun).String())
		return
	}
	l.Metrics.RolledBack(m.measured(), m.cause)
	l.wave.lose(m, model.USD(m.Saving))
	now := l.Clock.Now()
	for _, r := range m.Remove {
		before := l.rests[r.Node]
		pause := min(restAtMost, restAtLeast<<min(before.failures, 10))
		l.rests[r.Node] = rest{failures: before.failures + 1, until: now.Add(pause)}
	}
	logger.Info("took a move back", "because", m.failed)
}
