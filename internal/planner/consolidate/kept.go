package consolidate

import (
	"cmp"
	"fmt"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/search"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// keeping says why nodes are kept, once all commands are made.
type keeping struct{ b *builder }

// report has one entry for every node of a NodePool that no command removes.
func (k keeping) report() []model.KeptNode {
	var out []model.KeptNode
	b := k.b
	for n := range int32(len(b.p.Nodes)) {
		if b.p.Nodes[n].Policy < 0 || b.st.Bins.At(n).Removed && b.p.Planning.Nodes[n].State != model.NodeLeaving {
			continue
		}
		why, blocked := b.refused[n], b.st.Eligible.Blocked(n)
		if blocked != nil && (why == nil || blocked.Reason == model.ReasonReceivesPods) {
			why = blocked
		}
		if why == nil {
			why = k.explain(n)
			b.rejected[why.Reason]++
		}
		out = append(out, *why)
	}
	return out
}

// explain tries to remove a candidate and says what speaks against it. The state stays
// as it is.
func (k keeping) explain(n int32) *model.KeptNode {
	b, node := k.b, &k.b.p.Nodes[n]
	name := b.p.NodeName(int(n))
	if why := cmp.Or(b.st.Eligible.KeptFor(n), b.st.Budgets.BlockConsolidation(n), b.st.Eligible.Postponed(n)); why != nil {
		return why
	}
	start := b.st.Mark()
	defer b.st.Undo(start)
	b.st.Unplaced.Begin()
	b.eval.Clear(&search.Trial{Remove: []int32{n}})
	if b.eval.Placer.PlaceAll() {
		return compiled.Keep(int(n), model.ReasonNoCheaper,
			"%s costs %s and its pods have room elsewhere only together with other moves.", name, node.Price)
	}
	left := unplaceable{st: b.st}
	pods, fit := left.summary()
	before := b.st.Price()
	due := model.Money(node.EvictionCost) + b.p.Input.Terms.LeastSaving(node.Price)
	if b.eval.Buyer.NoSpot {
		// What spot machines would cost is looked at although they may not be bought: the
		// options leave out on-demand ones that a cheaper spot one dominates.
		b.eval.Buyer.NoSpot = false
		if b.eval.Buyer.Buy(node.Price - due - 1) {
			return compiled.Keep(int(n), model.ReasonSpotToSpot, "Spot node %s (%s) could be replaced by spot machines for %s, "+
				"but replacing spot by spot is switched off.", name, node.Price, b.st.Price()-before)
		}
	}
	if b.eval.Buyer.StaysSpot {
		b.eval.Buyer.StaysSpot = false
		if b.eval.Buyer.Buy(node.Price - due - 1) {
			return compiled.Keep(int(n), model.ReasonNoCheaper, "Spot node %s (%s) could be replaced by on-demand machines for %s, "+
				"but its pods and their NodePool allow spot.", name, node.Price, b.st.Price()-before)
		}
	}
	if !b.eval.Buyer.Buy(state.AnyPrice) {
		return left.explain(int(n))
	}
	cost := b.st.Price() - before
	b.st.Undo(start)
	if why := k.held(n, due); why != nil {
		return why
	}
	if cost < node.Price {
		return compiled.Keep(int(n), model.ReasonSmallSaving, "%s of %s %s on no other node, and the cheapest machines for "+
			"them cost %s; with that, giving %s back saves %s of %s, and it would have to save %s.",
			pods, name, fit, cost, name, node.Price-cost, node.Price, due)
	}
	return compiled.Keep(int(n), model.ReasonNoCheaper,
		"%s of %s %s on no other node, and the cheapest machines for them cost %s; %s costs %s.", pods, name, fit, cost, name, node.Price)
}

// held says that a node would go, and save what is due, if its pods gave up preferences that
// hold where they are, or went to a lighter NodePool than they may; nil where that is not so.
// Precondition: the node is not removed.
func (k keeping) held(n int32, due model.Money) *model.KeptNode {
	b, node, name := k.b, &k.b.p.Nodes[n], k.b.p.NodeName(int(n))
	start := b.st.Mark()
	goes := func(release func()) bool {
		defer b.st.Undo(start)
		b.st.Unplaced.Begin()
		b.eval.Clear(&search.Trial{Remove: []int32{n}})
		release()
		return b.eval.Placer.PlaceAll() || b.eval.Buyer.Buy(node.Price-due-1)
	}
	switch {
	case goes(b.st.Unplaced.ReleasePreferences):
		return compiled.Keep(int(n), model.ReasonKeepsPreferences,
			"%s could go if %s gave up preferences that hold there.", name, k.preferring(n))
	case goes(b.st.Unplaced.Release):
		return compiled.Keep(int(n), model.ReasonPoolWeight, "%s could go if its pods went to a NodePool of less weight than they have to.", name)
	}
	return nil
}

// preferring names the pods of a node of which preferences hold there.
func (k keeping) preferring(n int32) string {
	classes, text := 0, ""
	for _, g := range k.b.p.Nodes[n].Pods {
		if int(g.Level) >= len(k.b.p.Classes[g.Class].Levels)-1 {
			continue
		}
		if classes++; classes == 1 {
			text = fmt.Sprintf("%s of %s", compiled.Plural(int(g.Count), "pod"), k.b.p.Owner(g.Class))
		}
	}
	if classes > 1 {
		text += fmt.Sprintf(" and %s", compiled.Plural(classes-1, "other group"))
	}
	return text
}
