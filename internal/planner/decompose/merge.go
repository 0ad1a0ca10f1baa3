package decompose

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Merge makes one plan of the plans of all parts, in their order, by index in the whole.
// What is wrong with a NodePool, size or node is told once.
func Merge(p *model.Problem, parts []Part, plans []*model.Plan) *model.Plan {
	out := &model.Plan{}
	for i, plan := range plans {
		parts[i].addTo(out, plan)
	}
	inOrder(p, out)
	return out
}

// addTo adds the plan of the part to one of the whole.
func (t *Part) addTo(out, plan *model.Plan) {
	for _, n := range plan.NewNodes {
		n.Pool, n.Pods = t.pools[n.Pool], t.podsOf(n.Pods)
		out.NewNodes = append(out.NewNodes, n)
	}
	for _, pl := range plan.Placements {
		out.Placements = append(out.Placements, model.Placement{Node: t.nodes[pl.Node], Pods: t.podsOf(pl.Pods)})
	}
	for _, u := range plan.Unschedulable {
		u.Class, u.Pools = t.classes[u.Class], slices.Clone(u.Pools)
		for v := range u.Pools {
			u.Pools[v].Pool = t.pools[u.Pools[v].Pool]
		}
		out.Unschedulable = append(out.Unschedulable, u)
	}
	for _, r := range plan.Relaxed {
		r.Class = t.classes[r.Class]
		out.Relaxed = append(out.Relaxed, r)
	}
	for _, r := range plan.Rejected {
		if !slices.Contains(out.Rejected, r) {
			out.Rejected = append(out.Rejected, r)
		}
	}
	out.Cost, out.LowerBound = out.Cost+plan.Cost, out.LowerBound+plan.LowerBound
	out.Fewer.Machines, out.Fewer.Paid = out.Fewer.Machines+plan.Fewer.Machines, out.Fewer.Paid+plan.Fewer.Paid
	stats := &out.Stats
	stats.Engine = plan.Stats.Engine
	stats.Steps, stats.Rounds = stats.Steps+plan.Stats.Steps, stats.Rounds+plan.Stats.Rounds
	stats.FirstCost += plan.Stats.FirstCost
}

// inOrder sorts new nodes by NodePool as a plan of the whole has them: the heaviest first,
// then by name; what else is listed it sorts by class.
func inOrder(p *model.Problem, plan *model.Plan) {
	slices.SortStableFunc(plan.NewNodes, func(a, b model.NewNode) int {
		poolA, poolB := &p.Pools[a.Pool], &p.Pools[b.Pool]
		return cmp.Or(cmp.Compare(poolB.Weight, poolA.Weight), cmp.Compare(poolA.Name, poolB.Name))
	})
	slices.SortStableFunc(plan.Placements, func(a, b model.Placement) int { return cmp.Compare(a.Node, b.Node) })
	slices.SortStableFunc(plan.Unschedulable, func(a, b model.Unschedulable) int { return cmp.Compare(a.Class, b.Class) })
	slices.SortStableFunc(plan.Relaxed, func(a, b model.Relaxation) int { return cmp.Compare(a.Class, b.Class) })
}

// podsOf are pods of the part by class of the whole.
func (t *Part) podsOf(pods []model.ClassPods) []model.ClassPods {
	out := slices.Clone(pods)
	for i := range out {
		out[i].Class = t.classes[out[i].Class]
	}
	return out
}

// Unplaced is a part that has all classes of those parts whose plans leave pods without a
// place, and all NodePools and nodes, by which it can be said why. The numbers are those of
// these parts. Without such pods there is none.
func Unplaced(p *model.Problem, parts []Part, plans []*model.Plan) (rest *Part, which []int) {
	rest = &Part{pools: allOf(len(p.Pools)), nodes: allOf(len(p.Nodes))}
	for i, plan := range plans {
		if len(plan.Unschedulable) > 0 {
			which = append(which, i)
			rest.classes = append(rest.classes, parts[i].classes...)
		}
	}
	if which == nil {
		return nil, nil
	}
	slices.Sort(rest.classes)
	own := *p
	own.Classes = chosen(p.Classes, rest.classes)
	rest.Problem = &own
	return rest, which
}

// Cells is how much there is to look at in a problem: a cell for each class and offering.
func Cells(p *model.Problem) int { return cellsOf(p, newOpenLabels(p)) }

func cellsOf(p *model.Problem, open *openLabels) int {
	return len(p.Classes) * offerings(p, allOf(len(p.Pools)), open)
}

// Replace puts a part and its plan in the place of others, by number.
func Replace(parts []Part, plans []*model.Plan, others []int, part *Part, plan *model.Plan) ([]Part, []*model.Plan) {
	outParts, outPlans := []Part{*part}, []*model.Plan{plan}
	for i := range parts {
		if !slices.Contains(others, i) {
			outParts, outPlans = append(outParts, parts[i]), append(outPlans, plans[i])
		}
	}
	return outParts, outPlans
}

// ByPriority are the numbers of parts, those first that have the pods of highest priority.
func ByPriority(parts []Part) []int {
	highest := make([]int32, len(parts))
	for i := range parts {
		classes := parts[i].Problem.Classes
		for c := range classes {
			if priority := classes[c].Priority; c == 0 || priority > highest[i] {
				highest[i] = priority
			}
		}
	}
	order := allOf(len(parts))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(highest[b], highest[a]) })
	return order
}
