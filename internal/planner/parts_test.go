package planner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// tenants draws a problem of some tenants, who share a catalogue and quotas. Now and then a
// class may use what is another tenant's, or speaks of other tenants' pods.
func (d *dice) tenants() *model.Problem {
	all := d.problem()
	all.Pools, all.Nodes, all.Classes, all.Shapes = nil, nil, nil, nil
	if d.once(2) {
		all.Quotas = []model.Quota{{Name: "family", Left: int64(d.upTo(40)) * 1000}}
	}
	for i := range 2 + d.upTo(2) {
		d.settle(all, d.problem(), fmt.Sprint("t", i))
	}
	return all
}

// settle makes the pods, nodes and NodePools of a problem those of a tenant.
func (d *dice) settle(all, own *model.Problem, tenant string) {
	mine := model.Requirement{Key: "tenant", Operator: model.In, Values: []string{tenant}}
	named := func(namespaces []string) []string {
		var out []string
		for _, n := range namespaces {
			out = append(out, tenant+n)
		}
		return out
	}
	move := func(terms []model.AffinityTerm) {
		for i := range terms {
			terms[i].Namespaces = named(terms[i].Namespaces)
		}
	}
	for _, pool := range own.Pools {
		pool.Name = tenant + pool.Name
		if d.once(4) { // for all tenants, by machine
			pool.Requirements = append(pool.Requirements, model.Requirement{Key: "tenant", Operator: model.Exists})
		} else {
			pool.Requirements = append(pool.Requirements, mine)
		}
		all.Pools = append(all.Pools, pool)
	}
	shapes := len(all.Shapes)
	for _, s := range own.Shapes {
		s.Namespace = tenant + s.Namespace
		move(s.AntiAffinity)
		all.Shapes = append(all.Shapes, s)
	}
	for _, n := range own.Nodes {
		n.Name, n.Labels["tenant"] = tenant+n.Name, tenant
		n.Labels[model.LabelHostname] = n.Name
		for i := range n.Bound {
			n.Bound[i].Shape += shapes
		}
		all.Nodes = append(all.Nodes, n)
	}
	for _, c := range own.Classes {
		c.Namespace, c.Owner = tenant+c.Namespace, tenant+c.Owner
		for i := range c.Spread { // others are in one part with all
			c.Spread[i].HonorNodeAffinity = c.Spread[i].HonorNodeAffinity || !d.once(6)
			c.Spread[i].HonorTaints = c.Spread[i].HonorTaints || !d.once(6)
		}
		if !d.once(12) {
			c.NodeRequirements = append(c.NodeRequirements, mine)
		}
		for i := range c.Pods {
			c.Pods[i].Name = tenant + c.Pods[i].Name
		}
		move(c.Affinity)
		move(c.AntiAffinity)
		for i := range c.Preferences {
			move([]model.AffinityTerm{c.Preferences[i].Term})
			c.Preferences[i].Term.Namespaces = named(c.Preferences[i].Term.Namespaces)
		}
		all.Classes = append(all.Classes, c)
	}
}

// left is how many pods of each class have no place.
func left(plan *model.Plan) string {
	counts := map[int]int{}
	for _, u := range plan.Unschedulable {
		counts[u.Class] += len(u.Pods)
	}
	return fmt.Sprint(counts)
}

// judgeInParts plans a problem in parts and judges the plan by the rules of the whole. It reports
// whether both bounds were compared with both costs, since the plan of the whole places as many pods.
func (d *dice) judgeInParts(p *model.Problem) (compared bool) {
	plan := planner.SolveInParts(p)
	violations := slices.DeleteFunc(verify.Check(p, plan), func(v verify.Violation) bool {
		return v.Rule == "near tie" // which is each part's own, by its own bound
	})
	if len(violations) > 0 || float64(plan.Fewer.Paid) > model.NearTie*float64(plan.Cost) {
		d.Fatalf("%v\n%s", violations, describe(p, plan))
	}
	for i := range plan.Unschedulable {
		if plan.Unschedulable[i].Reason == "" {
			d.Fatalf("no reason for %+v\n%s", plan.Unschedulable[i], describe(p, plan))
		}
	}
	whole := planner.SolveWhole(p)
	if more := verify.CouldAdd(p, plan); d.tiny && more != "" && verify.CouldAdd(p, whole) == "" {
		d.Fatalf("%s\n%s", more, describe(p, plan))
	}
	if left(plan) != left(whole) {
		return false
	}
	if plan.LowerBound > whole.Cost || whole.LowerBound > plan.Cost {
		d.Fatalf("costs %s, at least %s; as a whole %s, at least %s\n%s", plan.Cost, plan.LowerBound, whole.Cost, whole.LowerBound,
			describe(p, plan))
	}
	return true
}

// A plan made in parts breaks no rule of the whole, leaves no pod out that would fit, says
// why others have no place, and its bound holds for plans of the whole, as theirs for it.
func TestPlanInPartsIsOneOfTheWhole(t *testing.T) {
	inParts, compared := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tiny: rapid.Bool().Draw(rt, "tiny")}
		p := d.tenants()
		p.Policy.Budget = pick(d, 0, 2*time.Millisecond)
		if planner.Parts(p) == 0 {
			return
		}
		inParts++
		if d.judgeInParts(p) {
			compared++
		}
	})
	if t.Logf("%d plans in parts, %d of them compared", inParts, compared); compared < 10 {
		t.Errorf("only %d plans in parts, %d of them compared", inParts, compared)
	}
}

// shortTenants draws a problem of tenants who share a quota and limits.
func (d *dice) shortTenants() *model.Problem {
	p := d.tenants()
	p.Quotas = []model.Quota{{Name: "family", Left: int64(d.upTo(8)) * 1000}}
	for i := range p.Pools {
		pool := &p.Pools[i]
		pool.Weight = 0 // so that those with limits are shared, too
		if d.once(2) {
			pool.NodeLimit = pool.Nodes + d.upTo(2)
		}
		if i == 0 {
			pool.Requirements[len(pool.Requirements)-1] = model.Requirement{Key: "tenant", Operator: model.Exists}
		}
	}
	return p
}

// Where parts together need more than there is, they are planned in turn: the plan breaks no rule,
// leaves no pod out for which something is left, and has no bound that the whole does not keep.
func TestPlanInTurnIsOneOfTheWhole(t *testing.T) {
	inTurn := 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tiny: rapid.Bool().Draw(rt, "tiny")}
		p := d.shortTenants()
		for range 5 {
			if planner.PartsExceed(p) {
				break
			}
			p = d.shortTenants()
		}
		if !planner.PartsExceed(p) {
			return
		}
		inTurn++
		plan := planner.SolveInTurn(p)
		violations := slices.DeleteFunc(verify.Check(p, plan), func(v verify.Violation) bool { return v.Rule == "near tie" })
		if len(violations) > 0 {
			rt.Fatalf("%v\n%s", violations, describe(p, plan))
		}
		whole := planner.SolveWhole(p)
		if more := verify.CouldAdd(p, plan); d.tiny && more != "" && verify.CouldAdd(p, whole) == "" {
			rt.Fatalf("%s\n%s", more, describe(p, plan))
		}
		if left(plan) == left(whole) && plan.LowerBound > whole.Cost {
			rt.Fatalf("costs %s, at least %s; as a whole %s\n%s", plan.Cost, plan.LowerBound, whole.Cost, describe(p, plan))
		}
	})
	if t.Logf("%d plans in turn", inTurn); inTurn < 10 {
		t.Errorf("only %d plans in turn", inTurn)
	}
}
