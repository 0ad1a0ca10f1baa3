package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// bound computes a lower bound of the price of any set of nodes that commands can lead
// to.
type bound struct {
	p        *compiled.Problem
	eligible *eligibility.Table
}

// price is the price of the nodes that cannot be removed, whose free room costs
// nothing, plus the planner's bound for all other pods on new nodes, with limits,
// quotas, topology and preferences relaxed. Where a node that exists is cheaper than
// any new node in its stead, the planner's part is lowered in that proportion.
func (b bound) price() model.Money {
	input := b.p.Input
	p := *input.Problem
	p.Classes, p.Nodes = nil, nil
	pods := make([]int, len(input.Movable))
	var kept model.Money
	discount := 1.0
	for n := range b.p.Nodes {
		node := input.Problem.Nodes[n]
		if node.State == model.NodeLeaving {
			continue
		}
		if b.permanent(int32(n)) {
			kept += node.Price
			p.Nodes = append(p.Nodes, node)
			continue
		}
		discount = min(discount, b.discount(n))
		for _, cp := range input.Usages[n].Pods {
			pods[cp.Class] += len(cp.Pods)
		}
	}
	for i := range pods {
		class := input.Movable[i].PodClass
		class.Pods = class.Pods[:pods[i]]
		class.Spread, class.Affinity, class.AntiAffinity, class.Preferences, class.NodePreferences = nil, nil, nil, nil, nil
		if len(class.Pods) > 0 {
			p.Classes = append(p.Classes, class)
		}
	}
	p.Quotas = nil
	p.Pools = slices.Clone(p.Pools)
	for i := range p.Pools {
		p.Pools[i].Limits, p.Pools[i].NodeLimit, p.Pools[i].CostLimit, p.Pools[i].Weight = nil, -1, nil, 0
	}
	p.Policy.RelaxMinValues = true
	p.Policy.Elapsed = nil // steps measure the budget: the same bound on every machine, however long the search took
	plan := b.p.Prepared.Solve(&p)
	return kept + model.Money(float64(plan.LowerBound)*discount)
}

// permanent reports whether consolidation cannot remove a node, whatever happens
// elsewhere. What does not pay alone may pay together with others.
func (b bound) permanent(n int32) bool {
	if b.p.Nodes[n].Policy < 0 {
		return true
	}
	why := b.eligible.Blocked(n)
	if why == nil {
		return false
	}
	switch why.Reason {
	case model.ReasonPriceUnknown, model.ReasonDoesNotPay, model.ReasonUnbalanced, model.ReasonReceivesPods, model.ReasonKeptForWaiting,
		model.ReasonPodsEnding:
		return false
	default: // the other reasons hold the node for good
	}
	return true
}

// discount is the node's price over that of the cheapest new node with at least its
// room, at most 1; 0 where there is none.
func (b bound) discount(n int) float64 {
	node := &b.p.Nodes[n]
	if node.Price <= 0 {
		return 0
	}
	room := b.p.Project(b.p.Space.NodeFree(n))
	for _, g := range node.Pods {
		feasible.Add(room, b.p.Classes[g.Class].Size, int64(g.Count))
	}
	for i := range b.p.Options {
		if o := &b.p.Options[i]; feasible.Fits(room, o.Net) {
			return min(1, float64(node.Price)/float64(o.Price))
		}
	}
	return 0
}
