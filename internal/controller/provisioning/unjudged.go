package provisioning

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// settleUnjudged takes those pods out of the problem that the scheduler has not looked
// at, or that do not exist yet, and that fit on a node which is there or on its way: the
// scheduler will put them there, whatever they prefer. Their room is charged. A plan
// that looked at them would buy machines for what they prefer.
//
// It looks only at pods with preferences, since a plan puts all others on nodes that
// exist anyway, where it can. It returns the pods that it has taken out.
func settleUnjudged(in *fleet.Input, solve func(*model.Problem) *model.Plan) (settled []model.PodRef) {
	p := in.Problem
	unjudged := func(ref model.PodRef) bool {
		record := in.Record(ref)
		return record != nil && record.Unjudged
	}
	// places are the classes of p with pods which are asked about, in the order of alone.
	var places []int
	var alone []model.PodClass
	for i := range p.Classes {
		class := &p.Classes[i]
		if !prefers(class) || !slices.ContainsFunc(class.Pods, unjudged) {
			continue
		}
		one := *class
		one.Pods = slices.DeleteFunc(slices.Clone(class.Pods), func(ref model.PodRef) bool { return !unjudged(ref) })
		places, alone = append(places, i), append(alone, one)
	}
	if len(places) == 0 || len(p.Nodes) == 0 {
		return nil
	}
	plan := solve(&model.Problem{
		Axes: p.Axes, Shapes: p.Shapes, Nodes: p.Nodes, Classes: alone, Policy: model.Policy{IgnorePreferences: true},
	})
	fit := map[model.PodRef]bool{}
	for _, placement := range plan.Placements {
		for _, pods := range placement.Pods {
			for _, i := range pods.Pods {
				ref := alone[pods.Class].Pods[i]
				fit[ref], settled = true, append(settled, ref)
			}
			charge(p, placement.Node, &alone[pods.Class], len(pods.Pods))
		}
	}
	for _, i := range places {
		p.Classes[i].Pods = slices.DeleteFunc(slices.Clone(p.Classes[i].Pods), func(ref model.PodRef) bool { return fit[ref] })
	}
	p.Classes = slices.DeleteFunc(p.Classes, func(c model.PodClass) bool { return len(c.Pods) == 0 })
	return settled
}

// prefers reports whether pods of a class have preferences, so that a plan may buy a
// machine for pods that would fit on one that is there.
func prefers(c *model.PodClass) bool {
	return len(c.Preferences) > 0 || len(c.NodePreferences) > 0 ||
		slices.ContainsFunc(c.Spread, func(s model.SpreadConstraint) bool { return !s.Hard })
}
