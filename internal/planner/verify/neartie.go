package verify

import "github.com/nodeautoprovision/nap/internal/model"

// nearTie: what was paid for fewer machines is a small share of the cost, the plan is near
// its bound, and the catalogue of some machine says what nodes cost.
func (c *checker) nearTie(cost model.Money) {
	less := c.plan.Fewer
	if less.Machines < 1 || less.Paid < 1 {
		c.report("near tie", "%d machines fewer for %s", less.Machines, less.Paid)
	}
	if cheaper := cost - less.Paid; float64(less.Paid) > model.NearTie*float64(cheaper) {
		c.report("near tie", "%s of %s is paid for %d machines fewer", less.Paid, cheaper, less.Machines)
	}
	near := model.NearBound
	if c.spreadPods() {
		near = model.NearBoundSpread
	}
	if float64(cost) > (1+near)*float64(c.plan.LowerBound) {
		c.report("near tie", "%s was paid for fewer machines, and %s is far above the bound %s", less.Paid, cost, c.plan.LowerBound)
	}
	for i := range c.plan.NewNodes {
		if c.p.Catalogs[c.p.Pools[c.plan.NewNodes[i].Pool].Catalog].StatesNodeCost() {
			return
		}
	}
	c.report("near tie", "%s was paid for fewer machines, and no catalogue says what nodes cost", less.Paid)
}

// spreadPods reports whether a pod with a place has a required rule of topology.
func (c *checker) spreadPods() bool {
	hard := func(pods []model.ClassPods) bool {
		for _, cp := range pods {
			class := &c.p.Classes[cp.Class]
			for i := range class.Spread {
				if class.Spread[i].Hard {
					return true
				}
			}
			if len(class.Affinity)+len(class.AntiAffinity) > 0 {
				return true
			}
		}
		return false
	}
	for i := range c.plan.NewNodes {
		if hard(c.plan.NewNodes[i].Pods) {
			return true
		}
	}
	for i := range c.plan.Placements {
		if hard(c.plan.Placements[i].Pods) {
			return true
		}
	}
	return false
}

// leastShare is the least share of the price of what it removes that a command saves: more
// machines need more where a catalogue says what nodes cost.
func (c *moveChecker) leastShare(mv *model.Command) float64 {
	least := c.f.Terms.MinimumSaving
	for i := range mv.New {
		catalog := &c.p.Catalogs[c.p.Pools[mv.New[i].Pool].Catalog]
		if catalog.StatesNodeCost() && len(mv.New) > len(mv.Nodes) && least < model.LeastSplit {
			least = model.LeastSplit
		}
	}
	return least
}
