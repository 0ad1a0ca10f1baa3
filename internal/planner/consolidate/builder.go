package consolidate

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/search"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// builder builds commands on a state, one after the other, so that each is feasible in
// the cluster that its predecessors leave.
//
// Invariant: everything in the log of the state belongs to a command in commands,
// except while a command is being built.
type builder struct {
	p  *compiled.Problem
	st *state.State
	// eval has the placer and the buyer of st.
	eval     *search.Evaluator
	commands []model.Command
	// rejected counts the reasons for which commands were not made, and for which
	// nodes are kept.
	rejected map[model.Reason]int64
	// refused is, by node, why it is not removed though a command was to remove it.
	refused map[int32]*model.KeptNode
	// scores are those of the policy Balanced.
	scores []model.BalancedScore
	// capacityTypes says whether commands keep pods on their capacity type where they can.
	capacityTypes bool
	// left is what the commands so far leave of limits and quotas. What one of them gives back is
	// for its own machines: another one that bought with it would exceed the limit if it failed.
	left *feasible.Ledger
}

func newBuilder(eval *search.Evaluator, capacityTypes bool) *builder {
	return &builder{
		capacityTypes: capacityTypes, left: eval.State.Ledger.Fork(),
		p: eval.State.Problem, st: eval.State, eval: eval, rejected: map[model.Reason]int64{}, refused: map[int32]*model.KeptNode{},
	}
}

// makeAll makes the commands of what a search has found, in the state before the
// search: those that save most for their disruption first. What turns out not to be
// worth it, or not to be feasible in this order, is left out.
func (b *builder) makeAll(target *state.SubPlan) {
	b.st.Undo(0)
	b.st.Arrange()
	parts := split(b.p, target, b.capacityTypes)
	score := make([]float64, len(parts))
	order := make([]int, len(parts))
	for i := range parts {
		order[i] = i
		saving, units := b.saving(&parts[i])
		score[i] = float64(saving) / (units + 0.01)
		for _, n := range parts[i].Nodes { // a pod that moves in would have to move again
			b.st.Index.Remove(n)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(score[y], score[x]), cmp.Compare(parts[x].First(), parts[y].First()))
	})
	for _, i := range order {
		b.make(&parts[i])
	}
}

// saving is what a sub-plan saves per hour, and the units of eviction cost that it
// takes.
func (b *builder) saving(p *state.SubPlan) (saving model.Money, units float64) {
	for _, n := range p.Nodes {
		saving += b.p.Nodes[n].Price
		units += b.p.Nodes[n].EvictionUnits
	}
	for _, pu := range p.Purchases {
		saving -= b.p.Options[pu.Option].Price
	}
	return saving, units
}

// make makes the command of a sub-plan, or leaves the state as it was and notes why.
func (b *builder) make(p *state.SubPlan) {
	start := b.st.Mark()
	b.st.Unplaced.Begin()
	b.eval.Buyer.Replace(p.Nodes)
	for _, n := range p.Nodes {
		if !b.st.MayRemove(n) {
			b.st.Undo(start)
			return
		}
		b.st.Remove(n)
	}
	b.st.Unplaced.Sort(b.p.Rank)
	if b.eval.Buyer.BuildLoosely(p.Purchases) {
		b.record(start, model.DisruptUnderutilized, p.Nodes)
		return
	}
	if !b.eval.Buyer.Build(p) {
		b.st.Undo(start)
		b.refuse(p.Nodes, compiled.Keep(int(p.First()), model.ReasonLimit,
			"Limits or quotas leave no room for the machine that would replace %s together with the moves before.", b.p.NodeNames(p.Nodes)))
		return
	}
	if !b.st.Unplaced.None() && !b.eval.Placer.PlaceAll() && !b.eval.Buyer.Buy(b.slack(p)) {
		b.st.Undo(start)
		b.refuse(p.Nodes, b.noPlace(p))
		return
	}
	b.record(start, model.DisruptUnderutilized, p.Nodes)
}

// noPlace is why the pods of a sub-plan have no place.
func (b *builder) noPlace(p *state.SubPlan) *model.KeptNode {
	if b.eval.Buyer.NoSpot && slices.ContainsFunc(p.Purchases, func(pu state.Purchase) bool { return b.p.Options[pu.Option].Spot }) {
		return compiled.Keep(int(p.First()), model.ReasonSpotToSpot,
			"Replacing %s by cheaper spot machines is switched off.", b.p.NodeNames(p.Nodes))
	}
	return compiled.Keep(int(p.First()), model.ReasonNoPlace,
		"The pods of %s have no place together with the moves before.", b.p.NodeNames(p.Nodes))
}

// slack is what may be spent on top of the sub-plan's purchases.
func (b *builder) slack(p *state.SubPlan) model.Money {
	saving, _ := b.saving(p)
	for _, n := range p.Nodes {
		saving -= model.Money(b.p.Nodes[n].EvictionCost)
	}
	return max(0, saving-1)
}

// record writes down as a command what was done since the mark, if it may be done and
// is worth it; otherwise it undoes that and notes why.
func (b *builder) record(start int, reason model.DisruptionReason, nodes []int32) {
	if why := spreadBlock(b.st, start, nodes); why != nil {
		b.st.Undo(start)
		b.refuse(nodes, why)
		return
	}
	c := b.describe(start, reason, nodes)
	if reason == model.DisruptUnderutilized || reason == model.DisruptEmpty {
		if c.DisruptionCost == float64(len(nodes)) && len(c.New) == 0 {
			c.Reason = model.DisruptEmpty
		}
		if why := (terms{b.p, b.score}).apply(&c); why != nil {
			b.st.Undo(start)
			b.refuse(nodes, why)
			return
		}
	}
	for _, change := range b.st.Since(start) {
		switch i := change.Bin; {
		case change.Kind == state.Bought:
			b.st.Bins.At(i).Frozen = true
			b.st.Index.Remove(i)
		case change.Kind == state.Put && b.st.Bins.IsNode(i) && b.st.Eligible.Blocked(i) == nil:
			b.st.Eligible.Block(i, compiled.Keep(int(i), model.ReasonReceivesPods,
				"%s takes in pods of %s.", b.p.NodeName(int(i)), b.p.NodeNames(nodes)))
		}
	}
	b.commands = append(b.commands, c)
	b.st.Ledger.Cap(b.left)
	b.left = b.st.Ledger.Fork()
}

// score notes a score of the policy Balanced, once for a command that is tried again.
func (b *builder) score(s model.BalancedScore) {
	if !slices.ContainsFunc(b.scores, func(o model.BalancedScore) bool {
		return o.Policy == s.Policy && o.Approved == s.Approved && slices.Equal(o.Nodes, s.Nodes)
	}) {
		b.scores = append(b.scores, s)
	}
}

// refuse notes why nodes are kept which a command was to remove.
func (b *builder) refuse(nodes []int32, why *model.KeptNode) {
	b.rejected[why.Reason]++
	for _, n := range nodes {
		own := *why
		own.Node = int(n)
		b.refused[n] = &own
	}
}

// describe reads a command from what was done since the mark.
func (b *builder) describe(start int, reason model.DisruptionReason, nodes []int32) model.Command {
	out := model.Command{Reason: reason, DisruptionCost: float64(len(nodes))}
	// pods are those of each class which no bin has got yet.
	pods := map[int32][]int{}
	for _, n := range nodes {
		node := &b.p.Nodes[n]
		out.Nodes = append(out.Nodes, int(n))
		out.Saving += node.Price
		out.Evictions += node.Evictions
		out.DisruptionCost += node.EvictionUnits
		for _, cp := range node.Moving {
			class := int32(b.p.FirstMovable + cp.Class)
			pods[class] = append(pods[class], cp.Pods...)
		}
	}
	slices.Sort(out.Nodes)
	bins, into := b.movesSince(start)
	for _, i := range bins {
		list := b.namePods(into[i], pods)
		if b.st.Bins.IsNode(i) {
			out.Placements = append(out.Placements, model.Placement{Node: int(i), Pods: list})
			continue
		}
		node := b.eval.Buyer.Describe(i)
		node.Pods = list
		out.Saving -= node.Best().Price
		out.New = append(out.New, node)
	}
	return out
}

// movesSince lists the bins that were bought or got pods since the mark, ascending,
// and the pods that each got, by class.
func (b *builder) movesSince(start int) (bins []int32, into map[int32][]state.Relocated) {
	into = map[int32][]state.Relocated{}
	for _, c := range b.st.Since(start) {
		if c.Kind != state.Put && c.Kind != state.Bought {
			continue
		}
		if _, known := into[c.Bin]; !known {
			bins = append(bins, c.Bin)
			into[c.Bin] = nil
		}
		if c.Kind == state.Put {
			into[c.Bin] = append(into[c.Bin], c.Relocated)
		}
	}
	slices.Sort(bins)
	for _, list := range into {
		slices.SortStableFunc(list, func(x, y state.Relocated) int { return int(x.Class - y.Class) })
	}
	return bins, into
}

// namePods takes as many pods of each class as have moved to a bin.
func (b *builder) namePods(moved []state.Relocated, pods map[int32][]int) []model.ClassPods {
	var list []model.ClassPods
	for _, r := range moved {
		class := int(r.Class) - b.p.FirstMovable
		own := pods[r.Class][:r.Count]
		pods[r.Class] = pods[r.Class][r.Count:]
		if last := len(list) - 1; last >= 0 && list[last].Class == class {
			list[last].Pods = append(list[last].Pods, own...)
		} else {
			list = append(list, model.ClassPods{Class: class, Pods: slices.Clone(own)})
		}
	}
	return list
}

// removeEmpty removes the nodes on which nothing runs that costs anything to evict,
// as long as what else runs there has room elsewhere.
func (b *builder) removeEmpty() {
	for n := range int32(len(b.p.Nodes)) {
		if b.st.Eligible.Blocked(n) != nil || !b.p.Nodes[n].Empty() || len(b.st.Bins.At(n).Pods) > 0 || !b.st.MayRemove(n) {
			continue
		}
		start := b.st.Mark()
		b.st.Unplaced.Begin()
		b.st.Remove(n)
		if !b.eval.Placer.PlaceAll() {
			b.st.Undo(start)
			continue
		}
		b.record(start, model.DisruptEmpty, []int32{n})
	}
}

// makeSingles tries to remove, one by one, the candidates that are left: what the
// search kept, or what could not be made as it was meant.
func (b *builder) makeSingles() {
	for n := range int32(len(b.p.Nodes)) {
		if !b.st.Eligible.Candidate(n) || b.st.Bins.At(n).Removed || len(b.st.Bins.At(n).Pods) > 0 {
			continue
		}
		start := b.st.Mark()
		if b.eval.Attempt(&search.Trial{Remove: []int32{n}, Buy: true}) > 0 {
			b.record(start, model.DisruptUnderutilized, []int32{n})
		}
	}
}
