package disruption

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// A move may give many nodes back for many machines. When one of the machines
// cannot be bought, one of the nodes is held by a pod that has just come, or some
// pods have lost their room, the others need not stay for that: the move is
// narrowed to the nodes that can still go, and only the rest is let go.

// spare drops a replacement that will not come, if the move has others.
func (l *Loop) spare(ctx context.Context, m *move, claim, why string) bool {
	if m.Reason != model.DisruptUnderutilized || len(m.Replace) < 2 || len(m.Remove) < 2 {
		return false
	}
	m.Replace = slices.DeleteFunc(slices.Clone(m.Replace), func(r Replacement) bool { return r.Claim == claim })
	maps.DeleteFunc(m.homes, func(_ model.PodRef, home string) bool { return home == claim })
	log.FromContext(ctx).Info("a move goes on without one of its replacements", "move", m.ID, "NodeClaim", claim, "because", why)
	return true
}

// lost fails a move that has lost a replacement without which it is nothing.
func (l *Loop) lost(ctx context.Context, m *move, claim, why string) {
	if !l.spare(ctx, m, claim, why) {
		m.fail(model.ReasonUnavailable, "replacement %s %s", claim, why)
	}
}

// late drops the replacements that are not ready, if others are.
func (l *Loop) late(ctx context.Context, m *move) error {
	for _, r := range slices.Clone(m.Replace) {
		claim := &karpv1.NodeClaim{}
		err := l.Clients.Cached.Get(ctx, client.ObjectKey{Name: r.Claim}, claim)
		if err == nil && claim.StatusConditions().IsTrue(karpv1.ConditionTypeInitialized) {
			continue
		}
		why := "not ready after " + model.FormatDuration(replaceWithin)
		if !l.spare(ctx, m, r.Claim, why) {
			m.fail(model.ReasonNotInitialized, "replacement %s was %s", r.Claim, why)
			return nil
		}
		if err := l.giveBack(ctx, m, r.Claim); err != nil {
			return err
		}
	}
	return nil
}

// narrow looks for the most nodes of a move to which nobody objects and lets the
// others go. Nodes whose pods ask for little are kept first: most of them go that
// way. Without any left, the move is as it was.
func (l *Loop) narrow(ctx context.Context, m *move, found []consolidate.Objection) bool {
	if m.Reason != model.DisruptUnderutilized || len(m.Remove) < 2 {
		return false
	}
	blamed := map[string]bool{}
	for _, o := range found {
		blamed[o.Node] = true
	}
	all, asked := m.Remove, l.asked(m)
	kept := slices.DeleteFunc(slices.Clone(all), func(r Removed) bool { return blamed[r.Node] })
	slices.SortStableFunc(kept, func(a, b Removed) int { return cmp.Compare(asked[a.Node], asked[b.Node]) })
	var value worth
	stands := func(n int) bool {
		m.Remove, m.let = kept[:n:n], without(all, kept[:n])
		objections, input := l.objections(ctx, []*move{m})
		if len(objections) == 0 {
			value = worthOf(m, input.Fleet)
		}
		return len(objections) == 0
	}
	most := 0
	for over := len(kept) + 1; over-most > 1; {
		n := (most + over) / 2
		if over > len(kept) {
			n = len(kept) // mostly nothing but the blamed is in the way
		}
		if stands(n) {
			most = n
		} else {
			over = n
		}
	}
	m.Remove, m.let = kept[:most:most], without(all, kept[:most])
	if most == 0 {
		m.Remove, m.let = all, nil
		return false
	}
	l.wave.lose(m, model.USD(m.Saving)-value.saving)
	m.Saving, m.Evictions = value.saving.Dollars(), value.evictions
	log.FromContext(ctx).Info("a move goes on with fewer nodes", "move", m.ID, "nodes", names(m.Remove), "stay", names(m.let), "because", found[0].Message)
	return true
}

// letGo makes the nodes ordinary again that a narrowed move does not give back.
// The others say so first: whoever finds the move after a crash finds what is left
// of it.
func (l *Loop) letGo(ctx context.Context, m *move) error {
	text := m.text()
	if err := l.each(ctx, m.Remove, func(ctx context.Context, r Removed) error { return l.annotate(ctx, r.Claim, text) }); err != nil {
		return err
	}
	if err := l.open(ctx, m.let); err != nil {
		return err
	}
	if err := l.each(ctx, m.let, func(ctx context.Context, r Removed) error { return l.annotate(ctx, r.Claim, "") }); err != nil {
		return err
	}
	m.let = nil
	return nil
}

// worth is what a move comes to.
type worth struct {
	saving    model.Money
	evictions int
}

func worthOf(m *move, f *model.DisruptionProblem) worth {
	var w worth
	for n := range f.Problem.Nodes {
		node := &f.Problem.Nodes[n]
		if slices.ContainsFunc(m.Remove, func(r Removed) bool { return r.Node == node.Name }) {
			w.saving += node.Price
			for _, pods := range f.Usages[n].Pods {
				w.evictions += len(pods.Pods)
			}
		}
		if slices.ContainsFunc(m.Replace, func(r Replacement) bool { return r.Claim == node.Name || r.Claim == node.Claim }) {
			w.saving -= node.Price
		}
	}
	return w
}

// asked is what the pods of the move's nodes ask for, as shares of what all nodes
// have room for.
func (l *Loop) asked(m *move) map[string]float64 {
	s, out := l.Mirror.Snapshot(), map[string]float64{}
	for _, r := range m.Remove {
		out[r.Node] = 0
	}
	room := roomOf(s)
	for p := range s.Pods() {
		if sum, ours := out[p.Node]; ours && !p.Terminal {
			out[p.Node] = sum + size(&p.Spec.Requests, room)
		}
	}
	return out
}

func without(all, some []Removed) []Removed {
	return slices.DeleteFunc(slices.Clone(all), func(r Removed) bool { return slices.Contains(some, r) })
}
