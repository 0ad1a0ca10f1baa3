package decisions

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/model"
)

// describePlan is a plan in full, by names instead of indices wherever there are any.
func describePlan(p *model.Problem, plan *model.Plan) string {
	var b strings.Builder
	for i := range plan.NewNodes {
		b.WriteString(newNode(p, &plan.NewNodes[i]))
	}
	for _, pl := range plan.Placements {
		fmt.Fprintf(&b, "on %s:%s\n", p.Nodes[pl.Node].Name, pods(pl.Pods))
	}
	for _, u := range plan.Unschedulable {
		fmt.Fprintf(&b, "left %d x%d %s\n", u.Class, len(u.Pods), u.Reason)
	}
	for _, r := range plan.Relaxed {
		fmt.Fprintf(&b, "relaxed %d x%d %s\n", r.Class, r.Pods, r.Preference)
	}
	fmt.Fprintf(&b, "cost %v bound %v\n", plan.Cost, plan.LowerBound)
	return b.String()
}

func newNode(p *model.Problem, n *model.NewNode) string {
	var b strings.Builder
	pool := &p.Pools[n.Pool]
	fmt.Fprintf(&b, "buy %s", pool.Name)
	for _, ref := range n.Offerings {
		t := &p.Catalogs[pool.Catalog].InstanceTypes[ref.InstanceType]
		o := &t.Offerings[ref.Offering]
		fmt.Fprintf(&b, " %s/%s/%s", t.Name, o.Zone, o.CapacityType)
	}
	fmt.Fprintf(&b, ":%s\n", pods(n.Pods))
	return b.String()
}

// pods lists classes with their pods; both by index, which the problem fixes.
func pods(entries []model.ClassPods) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, " %d%v", e.Class, e.Pods)
	}
	return b.String()
}

// describeMoves is an answer of consolidation in full.
func describeMoves(f *model.DisruptionProblem, moves *model.Commands) string {
	var b strings.Builder
	for i := range moves.Commands {
		mv := &moves.Commands[i]
		fmt.Fprintf(&b, "%s nodes %v template %t saving %v evictions %d cost %.6f\n",
			mv.Reason, mv.Nodes, mv.FromTemplate, mv.Saving, mv.Evictions, mv.DisruptionCost)
		for k := range mv.New {
			b.WriteString(newNode(f.Problem, &mv.New[k]))
		}
		for _, pl := range mv.Placements {
			fmt.Fprintf(&b, "to %s:%s\n", f.Problem.Nodes[pl.Node].Name, pods(pl.Pods))
		}
	}
	for _, s := range moves.Kept {
		fmt.Fprintf(&b, "stays %s %s %s\n", f.Problem.Nodes[s.Node].Name, s.Reason, s.Message)
	}
	fmt.Fprintf(&b, "before %v after %v bound %v\n", moves.Before, moves.After, moves.LowerBound)
	return b.String()
}
