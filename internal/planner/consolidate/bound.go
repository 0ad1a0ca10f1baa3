package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// bound is a floor under the price of any set of nodes that the fleet can be
// turned into: the price of the nodes that nobody may give back, whose room is
// free, and the planner's own bound for all other pods on new machines. Where a
// node that exists is cheaper than any machine that could be bought in its stead,
// the bound is lowered in that proportion.
func (s *site) bound() model.Money {
	p := *s.fleet.Problem
	p.Classes = nil
	p.Nodes = nil
	left := make([][]int, len(s.fleet.Movable))
	var kept model.Money
	discount := 1.0
	for n := range s.nodes {
		node := s.fleet.Problem.Nodes[n]
		if node.State == model.NodeLeaving {
			continue
		}
		if s.anchored(n) {
			kept += node.Price
			p.Nodes = append(p.Nodes, node)
			continue
		}
		discount = min(discount, s.discount(n))
		for _, cp := range s.fleet.Usages[n].Pods {
			left[cp.Class] = append(left[cp.Class], cp.Pods...)
		}
	}
	for i := range left {
		class := s.fleet.Movable[i].PodClass
		class.Pods = class.Pods[:len(left[i])]
		class.Spread, class.Affinity, class.AntiAffinity, class.Preferences, class.NodePreferences = nil, nil, nil, nil, nil
		if len(class.Pods) > 0 {
			p.Classes = append(p.Classes, class)
		}
	}
	p.Quotas = nil
	p.Pools = slices.Clone(p.Pools)
	for i := range p.Pools {
		p.Pools[i].Limits, p.Pools[i].NodeLimit, p.Pools[i].Weight = nil, -1, 0
	}
	p.Policy.RelaxMinValues = true
	plan := planner.Solve(&p)
	return kept + model.Money(float64(plan.LowerBound)*discount)
}

// anchored nodes cannot be given back by consolidation, whatever happens
// elsewhere.
func (s *site) anchored(n int) bool {
	l := &s.nodes[n]
	if l.policy < 0 {
		return true
	}
	if l.stay == nil {
		return false
	}
	switch l.stay.Reason {
	case model.ReasonDoesNotPay, model.ReasonUnbalanced, model.ReasonReceivesPods, model.ReasonKeptForWaiting:
		return false
	}
	return true
}

// discount is the node's price over that of the cheapest machine with at least
// its room, at most 1.
func (s *site) discount(n int) float64 {
	l := &s.nodes[n]
	if l.price <= 0 {
		return 0
	}
	room := s.project(s.space.NodeFree(n))
	for _, t := range l.tenants {
		for d, v := range s.kinds[t.class].own {
			room[d] += v * int64(t.n)
		}
	}
	for i := range s.menu {
		if s.menu[i].price > l.price {
			break
		}
		if under(room, s.menu[i].net) {
			return 1
		}
	}
	for i := range s.menu {
		if under(room, s.menu[i].net) {
			return float64(l.price) / float64(s.menu[i].price)
		}
	}
	return 0
}
