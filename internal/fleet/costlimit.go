package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// counted is what a node counts for in its NodePool's limit in dollars per hour, and
// whether that is known: the price that its offering has now, for a machine that is not
// launched that of its plan where it is higher, and for one whose offering the catalogue
// does not have (any more) what it cost when it was bought.
func (n *stateNode) counted() (cost model.Money, known bool) {
	switch {
	case n.unlaunched:
		return max(n.cost.price, n.claim.Planned), n.cost.priced || n.claim.Planned > 0
	case n.cost.priced:
		return n.cost.price, true
	case n.claim == nil:
		return 0, false
	}
	cost = n.claim.Bought()
	return cost, cost > 0
}

// costOf sums what the nodes of a NodePool count for. Those that leave count until they are
// gone, for until then they are paid. It names the first node of which that is not known.
func (c *clusterNodes) costOf(pool string) (cost model.Money, unknown string) {
	for _, n := range c.inPool(pool) {
		one, known := n.counted()
		if !known && unknown == "" {
			unknown = n.name
		}
		cost += one
	}
	return cost, unknown
}

// DollarLimit is a limit of a NodePool in dollars per hour.
type DollarLimit struct {
	// Pool is the NodePool's name.
	Pool string
	// Used is what its nodes count for; those of which that is not known are left out.
	Limit, Used model.Money
}

// DollarLimits are the limits of NodePools in dollars per hour, by name. It fails only when
// ctx ends.
func (s *Snapshot) DollarLimits(ctx context.Context, source Catalogs) ([]DollarLimit, error) {
	pools := s.Pools()
	if !slices.ContainsFunc(pools, func(p *Pool) bool { return p.CostLimit != nil }) {
		return nil, nil // nodes are not described for nothing
	}
	catalogs, err := readCatalogs(ctx, pools, source, nil)
	if err != nil {
		return nil, err
	}
	nodes := joinNodes(s, &nodeDescriber{catalogs: catalogs, drivers: s.attaching.drivers, withoutClaims: s.withoutClaims()})
	var out []DollarLimit
	for _, p := range pools {
		if p.CostLimit != nil {
			used, _ := nodes.costOf(p.Name)
			out = append(out, DollarLimit{Pool: p.Name, Limit: *p.CostLimit, Used: used})
		}
	}
	return out, nil
}

// leaveOutUncounted lets NodePools with a limit in dollars buy nothing while it is not
// known what one of their nodes costs: what the limit leaves is not known then either.
func (c *poolCatalogs) leaveOutUncounted(pools []*Pool, nodes *clusterNodes) {
	for _, p := range pools {
		if p.CostLimit == nil || !c.buys(p.Name) {
			continue
		}
		if _, unknown := nodes.costOf(p.Name); unknown != "" {
			c.leaveOut(p, closedWhy{reason: model.ReasonCostLimit, message: fmt.Sprintf(
				"what node %s costs is not known, so neither is what the limit of %s leaves", unknown, *p.CostLimit)})
		}
	}
}
