package verify

import "github.com/nodeautoprovision/nap/internal/model"

// shares: no place that takes pods of a capped workload in has more of it than the cap,
// unless the plan says that pods found no place under it.
func (c *checker) shares() {
	given := map[int]bool{}
	for _, r := range c.plan.Relaxed {
		given[r.Class] = given[r.Class] || r.Preference == model.ShareGivenUp
	}
	for _, n := range c.plan.NewNodes {
		c.shareOf("a new node", nil, n.Pods, given)
	}
	for _, pl := range c.plan.Placements {
		c.shareOf("node "+c.p.Nodes[pl.Node].Name, c.p.Nodes[pl.Node].Bound, pl.Pods, given)
	}
}

// shareOf looks at one place, with the pods that it has and those that come.
func (c *checker) shareOf(where string, bound []model.BoundPods, pods []model.ClassPods, given map[int]bool) {
	for _, cp := range pods {
		class := &c.p.Classes[cp.Class]
		for i := range class.Spread {
			cap := &class.Spread[i]
			if !cap.Share || given[cp.Class] {
				continue
			}
			count := 0
			for _, b := range bound {
				if s := &c.p.Shapes[b.Shape]; s.Namespace == class.Namespace && cap.Selector.Matches(s.Labels) {
					count += b.Count
				}
			}
			for _, other := range pods {
				if o := &c.p.Classes[other.Class]; o.Namespace == class.Namespace && cap.Selector.Matches(o.Labels) {
					count += len(other.Pods)
				}
			}
			if count > int(cap.MaxSkew) {
				c.report("share of a node", "%s has %d pods of %s, at most %d may be there", where, count, class.Owner, cap.MaxSkew)
			}
		}
	}
}
