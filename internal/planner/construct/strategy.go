package construct

import (
	"math/rand/v2"

	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// Strategy is a way to construct a plan. None is best for every problem, so small
// problems are planned by all of them and the best plan stays. The zero value leaves
// the choice of new nodes to the bin packer and places constrained classes first.
type Strategy struct {
	// Sequential opens new nodes one by one, in order, instead of leaving their choice
	// to the bin packer. It keeps every count exact when something runs out.
	Sequential bool
	// ScarcityFirst chooses new nodes by what they take of scarce limits instead of by
	// their price.
	ScarcityFirst bool
	// SmallFirst has the bin packer give room to the small pods of a priority first where limits or
	// quotas leave pods out, so that more of them have a place.
	SmallFirst bool
	// BySize places large pods first, whatever their topology rules.
	BySize bool
	// ByUnitCost places pods first for which a node costs most, instead of the large
	// ones.
	ByUnitCost bool
	// ByCount compares domains by what a node for the pods that are left costs there,
	// instead of by a pod's share of a full node.
	ByCount bool
	// FewestNodes places pods that few of the existing nodes suit before those that
	// many suit.
	FewestNodes bool
	// Join lets every pod join a new node, which grows as long as a larger option
	// holds its pods, as Karpenter does: large pods first, whatever their topology rules
	// and whatever classes wait for them.
	Join bool
	// IgnorePriority places pods in an order that does not depend on their priority.
	IgnorePriority bool
	// HardOnly gives up the preferences of all classes but those of Params.Keep.
	HardOnly bool
	// OneByOne lets pods join nodes one by one even if no rule binds them, and opens
	// nodes as for one pod.
	OneByOne bool
}

// Params say how a constructor works. They never change while it does.
type Params struct {
	Strategy
	// Keep are the classes that keep their preferences in spite of HardOnly.
	Keep map[int]bool
	// Reserved is the reserved class: the next new node keeps room for its pods. Nil
	// means none.
	Reserved *instance.Class
	// Halvings say for how many of the pods that wait for it a new node keeps room: for
	// all if it is 0, for half of them if it is 1, for a quarter if it is 2, and so on.
	Halvings int
	// Perturb, if any, makes a class begin with another domain than the cheapest in one
	// of four cases.
	Perturb *rand.Rand
	// Late, if any, reports that there is no time to look for a better place for seeds.
	Late func() bool
}

// joins reports whether new nodes grow to hold pods of the class.
func (p *Params) joins(in *instance.Instance, c *instance.Class) bool {
	return p.Join || c.Colocated && (p.Halvings == 0 || hasAffinity(in, c.Index))
}

// onlyHard reports whether preferences bind no class that is placed later: if they are
// given up, and if a pool has minValues, whose nodes should be tied to one domain only
// if they have to be.
func (p *Params) onlyHard(in *instance.Instance) bool { return in.MinValues.Any() || p.HardOnly }

// hasAffinity reports whether pods of a class have to be near others.
func hasAffinity(in *instance.Instance, class int) bool {
	return len(in.Classes[class].Levels) > 0 && len(in.HardRules(class).Affinity) > 0
}
