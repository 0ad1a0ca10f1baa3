package verify

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// above: the nodes of a NodePool above its limits may be replaced by as much as they hold, but those
// of one whose limit is 0 are not.
func (c *moveChecker) above(pool *model.Pool) {
	if !slices.ContainsFunc(c.f.Usages, func(t model.NodeUsage) bool {
		return t.Held != nil && t.Policy >= 0 && c.f.Policies[t.Policy].Pool == pool.Name
	}) {
		return
	}
	for _, l := range pool.Limits {
		if l.Value > 0 && l.Axis < len(pool.Usage) {
			pool.Usage[l.Axis] = min(pool.Usage[l.Axis], l.Value)
		}
	}
	if pool.NodeLimit > 0 {
		pool.Nodes = min(pool.Nodes, pool.NodeLimit)
	}
}

// release: in limits in resources and nodes, what replaces a node takes its place.
func (c *moveChecker) release(t *model.NodeUsage) {
	for i := range c.p.Pools {
		if pool := &c.p.Pools[i]; pool.Name == c.f.Policies[t.Policy].Pool && t.Held != nil {
			pool.Usage, pool.Nodes = pool.Usage.Sub(t.Held), pool.Nodes-1
		}
	}
}

// keep: what a command gives back of limits beyond what it takes is not for the commands after it,
// for it may fail.
func (c *moveChecker) keep(before []model.Pool) {
	for i := range c.p.Pools {
		pool := &c.p.Pools[i]
		for axis := range pool.Usage {
			pool.Usage[axis] = max(pool.Usage[axis], before[i].Usage.Get(axis))
		}
		pool.Nodes = max(pool.Nodes, before[i].Nodes)
	}
}
