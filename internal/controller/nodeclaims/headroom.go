package nodeclaims

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// limitHeadroom keeps the alternatives of planned nodes within their pools' limits.
// The plan counts on the best offering of each node; when the cloud has none
// left, a larger alternative is bought, and a pool near its limit must not be
// carried over it by that.
type limitHeadroom struct {
	problem *model.Problem
	// slack is, by index of pool and of limit in Problem.Pools, what the limit
	// leaves after every planned node has been bought as planned, and after the
	// alternatives that take has granted. In the limit's unit; negative when the
	// plan itself exceeds the limit.
	slack [][]int64
	// dollars is what the limits in dollars per hour leave, by index of pool; zero for a
	// pool without one.
	dollars []model.Money
}

// newLimitHeadroom returns what the limits leave once these nodes are bought.
func newLimitHeadroom(p *model.Problem, nodes []model.NewNode) *limitHeadroom {
	h := &limitHeadroom{problem: p, slack: make([][]int64, len(p.Pools)), dollars: make([]model.Money, len(p.Pools))}
	for i := range p.Pools {
		if limit := p.Pools[i].CostLimit; limit != nil {
			h.dollars[i] = *limit - p.Pools[i].Cost
		}
		for _, l := range p.Pools[i].Limits {
			h.slack[i] = append(h.slack[i], l.Value-p.Pools[i].Usage.Get(l.Axis))
		}
	}
	for i := range nodes {
		n := &nodes[i]
		capacity := h.capacity(n, n.Best())
		for j, l := range p.Pools[n.Pool].Limits {
			h.slack[n.Pool][j] -= capacity.Get(l.Axis)
		}
		if p.Pools[n.Pool].CostLimit != nil {
			h.dollars[n.Pool] -= n.Best().Price
		}
	}
	return h
}

// take returns the offerings of a node that the limits leave, in their order,
// and sets aside what the largest of them needs beyond the best one. The best
// offering always stays: whether it fits is the plan's business. Those stay, too,
// without which the claim would not have as many values as minValues asks for, the
// smallest ones first: the API server refuses such a claim.
func (h *limitHeadroom) take(n *model.NewNode) []model.OfferingRef {
	limits := h.problem.Pools[n.Pool].Limits
	if len(limits) == 0 {
		return n.Offerings
	}
	slack := h.slack[n.Pool]
	best := h.capacity(n, n.Best())
	extra := make([]int64, len(limits))
	var kept, cut []model.OfferingRef
	for i, ref := range n.Offerings {
		capacity := h.capacity(n, ref)
		fits := true
		for j, l := range limits {
			more := capacity.Get(l.Axis) - best.Get(l.Axis)
			fits = fits && more <= max(slack[j], 0)
		}
		if i > 0 && !fits {
			cut = append(cut, ref)
			continue
		}
		kept = append(kept, ref)
	}
	if !h.problem.Policy.RelaxMinValues {
		kept = h.vary(n, kept, cut)
	}
	for _, ref := range kept {
		capacity := h.capacity(n, ref)
		for j, l := range limits {
			extra[j] = max(extra[j], capacity.Get(l.Axis)-best.Get(l.Axis))
		}
	}
	for j := range limits {
		slack[j] -= extra[j]
	}
	return kept
}

// spend sets aside what a node may cost beyond its best offering: as much as is asked for,
// or as the pool's limit in dollars leaves of it.
func (h *limitHeadroom) spend(n *model.NewNode, asked model.Money) model.Money {
	if h.problem.Pools[n.Pool].CostLimit == nil {
		return asked
	}
	granted := min(asked, max(0, h.dollars[n.Pool]))
	h.dollars[n.Pool] -= granted
	return granted
}

// vary adds offerings that were cut until the kept ones have as many values as the
// pool's minValues ask for, or none is left that adds a value. It keeps the order.
func (h *limitHeadroom) vary(n *model.NewNode, kept, cut []model.OfferingRef) []model.OfferingRef {
	pool := &h.problem.Pools[n.Pool]
	catalog := &h.problem.Catalogs[pool.Catalog]
	slices.SortStableFunc(cut, func(x, y model.OfferingRef) int {
		return cmp.Compare(h.capacity(n, x).Get(model.CPU), h.capacity(n, y).Get(model.CPU))
	})
	all := slices.Clone(kept)
	for _, r := range pool.Requirements {
		for _, ref := range cut {
			have := distinct(catalog, all, r.Key)
			if have >= r.MinValues {
				break
			}
			if with := append(slices.Clip(all), ref); distinct(catalog, with, r.Key) > have {
				all = with
			}
		}
	}
	if len(all) == len(kept) {
		return kept
	}
	out := n.Offerings[:0:0]
	for _, ref := range n.Offerings {
		if slices.Contains(all, ref) {
			out = append(out, ref)
		}
	}
	return out
}

func (h *limitHeadroom) capacity(n *model.NewNode, ref model.OfferingRef) model.Resources {
	catalog := &h.problem.Catalogs[h.problem.Pools[n.Pool].Catalog]
	return catalog.InstanceTypes[ref.InstanceType].Capacity
}
