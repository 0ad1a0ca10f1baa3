package portfolio

import (
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
)

// smallProblem is up to how many pods a problem is planned by several strategies even
// when all have a place; largeProblem when some wait although there may be a place, if
// there is time. Up to largeProblem, a search begins with a plan without time to know
// that.
const (
	smallProblem = 300
	largeProblem = 3000
)

// Strategies lists what else is worth trying after the first plan: when something ran
// out, nodes one by one; in problems of no more than so many pods in which nodes or
// topology leave a choice, every strategy.
func Strategies(c *construct.Constructor, first nodechoice.Result, mostPods int) []construct.Strategy {
	var out []construct.Strategy
	if first.Unplaced > 0 {
		out = append(out, construct.Strategy{Sequential: true}, construct.Strategy{Sequential: true, ScarcityFirst: true})
	}
	in := c.State.Instance
	nodes := len(c.State.Nodes) > 0
	pods, choice, preferring, unequal := 0, nodes, false, false
	for i := range in.Classes {
		class := &in.Classes[i]
		if class.Invalid != "" {
			continue
		}
		pods += len(class.Spec.Pods)
		choice = choice || class.Colocated || len(c.State.Domains.Keys(i, 0)) > 0
		preferring = preferring || len(class.Levels) > 1
		unequal = unequal || class.Spec.Priority != in.Classes[0].Spec.Priority
	}
	preferring = preferring && first.Unplaced > 0
	if !choice && !preferring && !unequal || pods > mostPods {
		return out
	}
	if first.Unplaced == 0 {
		out = append(out, construct.Strategy{Sequential: true})
	}
	out = append(out,
		construct.Strategy{ByCount: true},
		construct.Strategy{BySize: true},
		construct.Strategy{BySize: true, ByCount: true},
		construct.Strategy{Sequential: true, BySize: true, ByCount: true},
		construct.Strategy{Sequential: true, BySize: true, Join: true})
	if nodes {
		out = append(out,
			construct.Strategy{BySize: true, ByUnitCost: true},
			construct.Strategy{FewestNodes: true},
			construct.Strategy{Sequential: true, FewestNodes: true, Join: true})
	}
	if unequal {
		out = append(out,
			construct.Strategy{IgnorePriority: true},
			construct.Strategy{Sequential: true, IgnorePriority: true, Join: true})
	}
	if preferring {
		out = append(out,
			construct.Strategy{HardOnly: true},
			construct.Strategy{Sequential: true, BySize: true, Join: true, IgnorePriority: true, HardOnly: true})
	}
	return out
}
