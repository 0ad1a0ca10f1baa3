package nodeclaims

import "github.com/nodeautoprovision/nap/internal/model"

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
}

// newLimitHeadroom returns what the limits leave once these nodes are bought.
func newLimitHeadroom(p *model.Problem, nodes []model.NewNode) *limitHeadroom {
	h := &limitHeadroom{problem: p, slack: make([][]int64, len(p.Pools))}
	for i := range p.Pools {
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
	}
	return h
}

// take returns the offerings of a node that the limits leave, in their order,
// and sets aside what the largest of them needs beyond the best one. The best
// offering always stays: whether it fits is the plan's business.
func (h *limitHeadroom) take(n *model.NewNode) []model.OfferingRef {
	limits := h.problem.Pools[n.Pool].Limits
	if len(limits) == 0 {
		return n.Offerings
	}
	slack := h.slack[n.Pool]
	best := h.capacity(n, n.Best())
	extra := make([]int64, len(limits))
	kept := n.Offerings[:0:0]
	for i, ref := range n.Offerings {
		capacity := h.capacity(n, ref)
		fits := true
		for j, l := range limits {
			more := capacity.Get(l.Axis) - best.Get(l.Axis)
			fits = fits && more <= max(slack[j], 0)
		}
		if i > 0 && !fits {
			continue
		}
		kept = append(kept, ref)
		for j, l := range limits {
			extra[j] = max(extra[j], capacity.Get(l.Axis)-best.Get(l.Axis))
		}
	}
	for j := range limits {
		slack[j] -= extra[j]
	}
	return kept
}

func (h *limitHeadroom) capacity(n *model.NewNode, ref model.OfferingRef) model.Resources {
	catalog := &h.problem.Catalogs[h.problem.Pools[n.Pool].Catalog]
	return catalog.InstanceTypes[ref.InstanceType].Capacity
}
