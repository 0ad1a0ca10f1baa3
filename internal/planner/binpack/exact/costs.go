package exact

import "github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"

// Costs are the least costs of bins that hold items of a problem, for every state: so many of
// each class. They look at no shared limit.
type Costs struct {
	stride []int
	states []state
}

// AllCosts finds the costs of all states. It reports false, without much work, for problems
// that are too large.
func AllCosts(c *reduced.Problem) (*Costs, bool) {
	if len(c.Classes) == 0 {
		return &Costs{states: make([]state, 1)}, true
	}
	t := newTable(c)
	if t == nil {
		return nil, false
	}
	_, solved := t.fill()
	return &Costs{t.stride, t.states}, solved
}

// Of is the cost of so many items by class, or false if no bins hold them.
func (c *Costs) Of(counts []int) (int64, bool) {
	at := 0
	for i, n := range counts {
		at += n * c.stride[i]
	}
	cost := c.states[at].cost
	return cost, cost != never
}
