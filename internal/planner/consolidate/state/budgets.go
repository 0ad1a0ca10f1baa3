package state

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
)

// Budgets count what the removal of nodes takes of PodDisruptionBudgets and of the
// NodePools' disruption budgets.
type Budgets struct {
	p *compiled.Problem
	// evictions has the pods evicted and those that nodes which go already owe, by
	// PodDisruptionBudget.
	evictions []int32
	// removed has the nodes removed, by policy and whatever the reason.
	removed []int32
	// Ignored says that budgets which allow something allow everything: the search
	// asks for the goal that several rounds of disruption may reach.
	Ignored bool
}

func newBudgets(p *compiled.Problem) *Budgets {
	b := &Budgets{p: p, evictions: make([]int32, len(p.Input.Budgets)), removed: make([]int32, len(p.Input.Policies))}
	for i := range p.Input.Budgets {
		b.evictions[i] = int32(p.Input.Budgets[i].Owed)
	}
	return b
}

// Clone is an independent copy.
func (b *Budgets) Clone() *Budgets {
	return &Budgets{p: b.p, evictions: slices.Clone(b.evictions), removed: slices.Clone(b.removed), Ignored: b.Ignored}
}

// Count adds the removal of a node, or takes it back with sign -1.
func (b *Budgets) Count(n int32, sign int32) {
	node := &b.p.Nodes[n]
	if node.Policy >= 0 {
		b.removed[node.Policy] += sign
	}
	for _, d := range node.Draws {
		b.evictions[d.Budget] += sign * d.Pods
	}
}

// Allow reports whether a node may be removed next to those that are removed already,
// in this decision or by one before.
//
// A node that alone runs more pods of a PodDisruptionBudget than may be evicted at
// once is drained one pod after the other. It is then the only one that draws on that
// budget.
func (b *Budgets) Allow(n int32) bool {
	return b.p.Nodes[n].Policy >= 0 && b.poolAllows(n) && (b.Ignored || b.exceeded(n) == nil)
}

// within reports whether the budgets of a policy allow one more node for a reason.
// They count all nodes in disruption, whatever the reason.
func (b *Budgets) within(policy int, reason model.DisruptionReason) bool {
	allowed, limited := b.p.Input.Policies[policy].Allowed[reason]
	return !limited || int(b.removed[policy]) < allowed || b.Ignored && allowed > 0
}

// poolAllows reports whether the NodePool's budgets allow consolidation to remove one
// more node. A node that is empty only because its pods cost nothing to evict may need
// a replacement, and is then not removed for being empty, so it needs both budgets.
func (b *Budgets) poolAllows(n int32) bool {
	node := &b.p.Nodes[n]
	return (!node.Empty() || b.within(node.Policy, model.DisruptEmpty)) &&
		(node.Evictions == 0 || b.within(node.Policy, model.DisruptUnderutilized))
}

// exceeded is what of a node exceeds a PodDisruptionBudget next to those that are removed,
// or nil.
func (b *Budgets) exceeded(n int32) *compiled.Draw {
	draws := b.p.Nodes[n].Draws
	for i := range draws {
		if d := &draws[i]; b.evictions[d.Budget] > 0 && int(b.evictions[d.Budget]+d.Pods) > b.p.Input.Budgets[d.Budget].Allowed {
			return d
		}
	}
	return nil
}

// Block says which budget keeps a node from being removed for a reason next to those
// that are removed, or nil.
func (b *Budgets) Block(n int32, reason model.DisruptionReason) *model.KeptNode {
	if why := b.PodBlock(n); why != nil {
		return why
	}
	if b.poolAllows(n) {
		return nil
	}
	return b.poolBlock(n, reason)
}

// BlockConsolidation is Block for the reason for which consolidation would remove the
// node.
func (b *Budgets) BlockConsolidation(n int32) *model.KeptNode {
	if b.p.Nodes[n].Empty() {
		return b.Block(n, model.DisruptEmpty)
	}
	return b.Block(n, model.DisruptUnderutilized)
}

// BlockForced says that the NodePool's budgets allow no more nodes to be replaced for a
// reason, Drifted or Unhealthy, or is nil.
func (b *Budgets) BlockForced(n int32, reason model.DisruptionReason) *model.KeptNode {
	if b.within(b.p.Nodes[n].Policy, reason) {
		return nil
	}
	return b.poolBlock(n, reason)
}

// BlockStatic says that a node of a static pool cannot be replaced, since its
// replacement would be one node too many beside it, or is nil.
func (b *Budgets) BlockStatic(n int32) *model.KeptNode {
	policy := &b.p.Input.Policies[b.p.Nodes[n].Policy]
	count, replaced := policy.Count, int(b.removed[b.p.Nodes[n].Policy])
	switch {
	case count == nil || count.Replaceable(replaced):
		return nil
	case count.Surplus() > 0:
		return compiled.Keep(int(n), model.ReasonStaticPool,
			"NodePool %s has %s more than spec.replicas, which is %d. No node is replaced before there are no more.",
			policy.Pool, compiled.Plural(count.Surplus(), "node"), count.Replicas)
	}
	return compiled.Keep(int(n), model.ReasonNodeLimit,
		"%s needs a replacement before it goes, and spec.limits.nodes of NodePool %s allows %s, of which there are %d.",
		b.p.NodeName(int(n)), policy.Pool, compiled.Plural(count.Limit, "node"), count.Nodes+replaced)
}

func (b *Budgets) poolBlock(n int32, reason model.DisruptionReason) *model.KeptNode {
	policy := b.p.Nodes[n].Policy
	return compiled.KeepByBudget(b.p.Input, int(n), policy, reason, int(b.removed[policy]))
}

// PodBlock says which PodDisruptionBudget keeps a node from being removed next to
// those that are removed, or is nil.
func (b *Budgets) PodBlock(n int32) *model.KeptNode {
	draw := b.exceeded(n)
	if draw == nil {
		return nil
	}
	budget := &b.p.Input.Budgets[draw.Budget]
	takers := "the moves before take"
	if budget.Owed > 0 {
		takers = "nodes that go already and the moves before take"
	}
	why := compiled.Keep(int(n), model.ReasonPodBudget,
		"PodDisruptionBudget %s allows %s now; %s %d of them and %s needs %d.",
		budget, compiled.Plural(budget.Allowed, "eviction"), takers, b.evictions[draw.Budget], b.p.NodeName(int(n)), draw.Pods)
	why.Budget, why.OthersFirst = budget.String(), int(draw.Pods) <= budget.Allowed
	return why
}
