package consolidate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// forcing replaces nodes that are unhealthy, expire or have drifted, whatever that costs.
type forcing struct{ b *builder }

// replaceAll empties the nodes that are unhealthy, those that expire soon and those that
// have drifted. None of them takes in pods, all others do, whatever their
// consolidateAfter: that is cheaper and sooner than a new machine.
func (f forcing) replaceAll() {
	unhealthy, expiring, drifted := f.find()
	if len(unhealthy)+len(expiring)+len(drifted) == 0 {
		return
	}
	st := f.b.st
	unquiet := st.Eligible.ReceiveUnquiet()
	if len(unquiet) > 0 {
		st.Arrange()
	}
	f.receiveNone(unhealthy)
	f.receiveNone(expiring)
	f.receiveNone(drifted)
	f.replaceUnhealthy(unhealthy)
	f.replaceExpiring(expiring)
	f.replaceDrifted(drifted)
	f.receiveNone(unquiet) // what follows can wait until they are quiet
}

// receiveNone lets nodes take in no pods.
func (f forcing) receiveNone(nodes []int32) {
	for _, n := range nodes {
		f.b.st.Index.Remove(n)
		f.b.st.Eligible.SetReceives(n, false)
	}
}

// replaceExpiring empties nodes that expire soon, the first to expire first.
func (f forcing) replaceExpiring(expiring []int32) {
	st, usages := f.b.st, f.b.p.Input.Usages
	slices.SortStableFunc(expiring, func(x, y int32) int { return usages[x].ExpiresAt.Compare(usages[y].ExpiresAt) })
	prepared := f.prepared()
	for _, n := range expiring {
		if why := cmp.Or(keptForPending(st, int(n)), f.b.st.Budgets.BlockStatic(n)); why != nil {
			f.b.refuse([]int32{n}, why)
			continue
		}
		if !st.Eligible.Rules.Expired(int(n)) {
			f.prepare(n, prepared)
			continue
		}
		if why := f.undrainable(n, f.b.p.Input.Now); why != nil {
			f.b.refuse([]int32{n}, why)
			continue
		}
		f.replace(n, model.DisruptExpired)
	}
}

// replaceUnhealthy empties nodes that are unhealthy, those first that are for longest.
func (f forcing) replaceUnhealthy(unhealthy []int32) {
	st, usages := f.b.st, f.b.p.Input.Usages
	slices.SortStableFunc(unhealthy, func(x, y int32) int {
		return cmp.Or(
			usages[x].UnhealthySince.Compare(usages[y].UnhealthySince),
			strings.Compare(f.b.p.NodeName(int(x)), f.b.p.NodeName(int(y))),
		)
	})
	coming := st.Eligible.Coming()
	for _, n := range unhealthy {
		if why := forcedBlock(st, n, model.DisruptUnhealthy); why != nil {
			f.b.refuse([]int32{n}, why)
			continue
		}
		if why := f.waitsForMachine(n, coming); why != nil {
			f.b.refuse([]int32{n}, why)
			continue
		}
		f.replace(n, model.DisruptUnhealthy)
	}
}

// replaceDrifted empties nodes that have drifted, empty ones first, then those that
// drifted first. They also wait for room on machines that replace other nodes: of nodes that
// are half empty not each needs a machine of its own.
func (f forcing) replaceDrifted(drifted []int32) {
	st, usages, nodes := f.b.st, f.b.p.Input.Usages, f.b.p.Nodes
	slices.SortStableFunc(drifted, func(x, y int32) int {
		return cmp.Or(
			cmp.Compare(min(1, nodes[x].Evictions), min(1, nodes[y].Evictions)),
			usages[x].DriftSince.Compare(usages[y].DriftSince),
			strings.Compare(f.b.p.NodeName(int(x)), f.b.p.NodeName(int(y))),
		)
	})
	coming, known := slices.Concat(st.Eligible.Coming(), st.Eligible.Replacing()), int32(len(nodes))
	for _, n := range drifted {
		for ; known < int32(st.Bins.Len()); known++ {
			coming = append(coming, known)
		}
		why := forcedBlock(st, n, model.DisruptDrifted)
		if why == nil {
			why = f.waitsForMachine(n, coming)
		}
		if why != nil {
			f.b.refuse([]int32{n}, why)
			continue
		}
		f.replace(n, model.DisruptDrifted)
	}
}

// waitsForMachine keeps a node whose pods have no room yet and will have it on bins that are on
// their way or promised to others: another machine would be bought beside them. It then holds
// that room, so that no other node waits for it. It is nil where that is not so.
func (f forcing) waitsForMachine(n int32, coming []int32) *model.KeptNode {
	st := f.b.st
	if len(coming) == 0 || f.b.p.Input.Policies[f.b.p.Nodes[n].Policy].Static {
		return nil
	}
	start := st.Mark()
	st.Unplaced.Begin()
	f.b.eval.Buyer.Replace(nil)
	st.Remove(n)
	var taken []state.Assignment
	if !f.b.eval.Placer.PlaceAll() {
		before := st.Mark()
		if f.b.eval.Placer.PlaceOn(coming) {
			for _, c := range st.Since(before) {
				taken = append(taken, state.Assignment{Bin: c.Bin, Relocated: c.Relocated})
			}
		}
	}
	st.Undo(start)
	if len(taken) == 0 {
		return nil
	}
	until, are := f.b.p.Input.Now.Add(eligibility.ComingFor), "are on their way"
	for _, a := range taken {
		st.Bins.Hold(a.Bin, a.Relocated)
		if st.Bins.IsNode(a.Bin) {
			usage := &f.b.p.Input.Usages[a.Bin]
			if ends := usage.Created.Add(eligibility.ComingFor); ends.Before(until) {
				until = ends
			}
			if !usage.Reserved {
				continue
			}
		}
		are = "replace other nodes"
	}
	why := compiled.Keep(int(n), model.ReasonNotInitialized,
		"%s waits for machines which %s and have room for its pods.", f.b.p.NodeName(int(n)), are)
	why.Until = until
	return why
}

// preparedShare bounds how many nodes of a NodePool have a replacement that waits for
// their expiry, as a share of its nodes: 1/preparedShare, and one in any case. Nodes of
// one age would all stand twice otherwise.
const preparedShare = 10

// prepared counts, by policy, the nodes that expire soon and are being replaced already. Those
// whose end has come do not count: their replacements wait for it no longer, and a node that
// cannot be drained would keep all others of its NodePool from being prepared.
func (f forcing) prepared() map[int]int {
	out, rules := map[int]int{}, f.b.st.Eligible.Rules
	for n := range f.b.p.Nodes {
		if t := &f.b.p.Input.Usages[n]; t.Disrupting && rules.Expires(n) && !rules.Expired(n) {
			out[t.Policy]++
		}
	}
	return out
}

// prepare buys the replacement of a node that expires soon. Nodes beyond the share of
// their NodePool are left alone until their end has come: their pods are planned then. So
// are nodes with a pod that cannot be evicted then: nothing is bought for it.
func (f forcing) prepare(n int32, prepared map[int]int) {
	b := f.b
	t, nodes := &b.p.Input.Usages[n], 0
	for i := range b.p.Input.Usages {
		if b.p.Input.Usages[i].Policy == t.Policy {
			nodes++
		}
	}
	if prepared[t.Policy] >= max(1, nodes/preparedShare) {
		b.refuse([]int32{n}, f.later(n, "enough nodes of its NodePool that expire have their replacement already"))
		return
	}
	if why := f.undrainable(n, t.ExpiresAt); why != nil {
		b.refuse([]int32{n}, f.later(n, fmt.Sprintf("pod %s cannot be evicted then", why.Pod)))
		return
	}
	before := len(b.commands)
	f.replace(n, model.DisruptExpired)
	prepared[t.Policy] += len(b.commands) - before
}

// undrainable is a pod that stays on a node which a drain at a time empties, nil for none, and
// for a node of a static pool, which is replaced whatever its pods do.
func (f forcing) undrainable(n int32, at time.Time) *model.KeptNode {
	if f.b.p.Input.Policies[f.b.p.Nodes[n].Policy].Static {
		return nil
	}
	return f.b.st.Eligible.Rules.Undrainable(int(n), at)
}

// later keeps a node until it expires.
func (f forcing) later(n int32, why string) *model.KeptNode {
	ends := f.b.p.Input.Usages[n].ExpiresAt
	kept := compiled.Keep(int(n), model.ReasonExpiresLater, "%s expires at %s; %s.", f.b.p.NodeName(int(n)), compiled.FormatTime(ends), why)
	kept.Until = ends
	return kept
}

// find lists the nodes that are unhealthy, those that expire soon and those that have
// drifted, each once and without those that are not to be touched at all.
func (f forcing) find() (unhealthy, expiring, drifted []int32) {
	rules := f.b.st.Eligible.Rules
	untouchable := func(why *model.KeptNode) bool {
		return why != nil &&
			(why.Reason == model.ReasonBeingDisrupted || why.Reason == model.ReasonNotInitialized || why.Reason == model.ReasonMoveFailed)
	}
	for n := range f.b.p.Nodes {
		switch {
		case rules.Unhealthy(n):
			if !untouchable(rules.Repair(n)) {
				unhealthy = append(unhealthy, int32(n))
			}
		case untouchable(rules.Node(n)):
		case rules.Expires(n):
			expiring = append(expiring, int32(n))
		case rules.Drifts(n):
			drifted = append(drifted, int32(n))
		}
	}
	return unhealthy, expiring, drifted
}

// forcedBlock says why a node cannot be replaced now because it has drifted or is
// unhealthy, or is nil. When its drain ends by force, neither its pods nor their budgets
// keep it. A pod that no scheduler can place keeps it even then.
func forcedBlock(st *state.State, n int32, reason model.DisruptionReason) *model.KeptNode {
	rules, usage := st.Eligible.Rules, &st.Problem.Input.Usages[n]
	guards := func(n int) *model.KeptNode { return cmp.Or(rules.Node(n), rules.Frozen(n)) }
	if reason == model.DisruptUnhealthy {
		guards = rules.Repair
	}
	if why := cmp.Or(guards(int(n)), keptForPending(st, int(n))); why != nil {
		return why
	}
	if why := rules.Pods(int(n)); why != nil && (!usage.GracePeriod || why.Reason == model.ReasonPodInvalid) {
		return why
	}
	if why := st.Budgets.BlockForced(n, reason); why != nil {
		return why
	}
	if why := st.Budgets.BlockStatic(n); why != nil && !goesFirst(st, n, reason) {
		return why
	}
	if usage.GracePeriod {
		return nil
	}
	return st.Budgets.PodBlock(n)
}

// goesFirst reports whether a node of a static pool goes without a replacement.
func goesFirst(st *state.State, n int32, reason model.DisruptionReason) bool {
	count := st.Problem.Input.Policies[st.Problem.Nodes[n].Policy].Count
	return count != nil && count.GoesFirst(reason)
}

// replace removes one node, wherever its pods have to go. For those that stay until its grace
// period ends no place is sought. A node of a static pool is
// replaced from the pool's template, and its pods are not placed. A node that has not
// expired yet stays when its pods need no new node, which takes time.
func (f forcing) replace(n int32, reason model.DisruptionReason) {
	b, nodes := f.b, []int32{n}
	start := b.st.Mark()
	b.st.Unplaced.Begin()
	b.eval.Buyer.Replace(nil)
	b.st.Remove(n)
	if b.p.Input.Policies[b.p.Nodes[n].Policy].Static {
		b.st.Unplaced.Drop()
		c := b.describe(start, reason, nodes)
		c.FromTemplate, c.Saving = true, 0
		c.TerminateFirst = goesFirst(b.st, n, reason)
		b.commands = append(b.commands, c)
		return
	}
	placed := b.eval.Placer.PlaceAll()
	if placed && reason == model.DisruptExpired && !b.st.Eligible.Rules.Expired(int(n)) {
		b.st.Undo(start)
		which := "its pods"
		if b.p.Nodes[n].Staying > 0 {
			which = "those of its pods that can be evicted then"
		}
		b.refuse(nodes, f.later(n, which+" need no new node"))
		return
	}
	if !placed && !b.eval.Buyer.Buy(state.AnyPrice) && !f.release() {
		why := unplaceable{st: b.st}.explain(int(n))
		b.st.Undo(start)
		b.refuse(nodes, why)
		return
	}
	b.record(start, reason, nodes)
}

// release places the unplaced pods, which have no place with the preferences that hold where
// they are and by the weights of NodePools, without these.
func (f forcing) release() bool {
	f.b.st.Unplaced.Release()
	return f.b.eval.Placer.PlaceAll() || f.b.eval.Buyer.Buy(state.AnyPrice)
}
