package consolidate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// tenants draws a fleet of some tenants, who share quotas. Now and then pods may use what is
// another tenant's, or speak of other tenants' pods.
func (d *dice) tenants() *model.DisruptionProblem {
	all := d.fleet()
	d.settle(all, all, "t0")
	for i := range 1 + d.upTo(2) {
		own := d.fleet()
		d.settle(all, own, fmt.Sprint("t", i+1))
		join(all, own)
	}
	return all
}

// share makes the first NodePool of every tenant one, which leaves the tenant to its machines and
// lets few nodes go.
func (d *dice) share(f *model.DisruptionProblem) {
	p := f.Problem
	all := p.Pools[0].Name
	p.Pools[0].Requirements[len(p.Pools[0].Requirements)-1] = model.Requirement{Key: "tenant", Operator: model.Exists}
	policy := slices.IndexFunc(f.Policies, func(of model.DisruptionPolicy) bool { return of.Pool == all })
	if policy >= 0 {
		f.Policies[policy].Allowed = map[model.DisruptionReason]int{model.DisruptEmpty: d.upTo(2), model.DisruptUnderutilized: d.upTo(2)}
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Pool != "" && policy >= 0 {
			n.Pool, n.Labels[model.LabelNodePool], f.Usages[i].Policy = all, all, policy
		}
	}
}

// settle makes the pods, nodes and NodePools of a fleet those of a tenant.
func (d *dice) settle(all, own *model.DisruptionProblem, tenant string) {
	mine := model.Requirement{Key: "tenant", Operator: model.In, Values: []string{tenant}}
	p := own.Problem
	p.Policy = all.Problem.Policy
	for i := range p.Pools {
		p.Pools[i].Name = tenant + p.Pools[i].Name
		p.Pools[i].Requirements = append(p.Pools[i].Requirements, mine)
	}
	for i := range own.Policies {
		own.Policies[i].Pool = tenant + own.Policies[i].Pool
	}
	for i := range own.Budgets {
		own.Budgets[i].Namespace = tenant + own.Budgets[i].Namespace
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Name, n.Labels["tenant"] = tenant+n.Name, tenant
		n.Labels[model.LabelHostname] = n.Name
		if n.Claim != "" {
			n.Claim = tenant + n.Claim
		}
		if n.Pool != "" {
			n.Pool = tenant + n.Pool
			n.Labels[model.LabelNodePool] = n.Pool
		}
	}
	for i := range p.Classes {
		d.settlePods(&p.Classes[i], mine, tenant)
	}
	for i := range own.Movable {
		d.settlePods(&own.Movable[i].PodClass, mine, tenant)
		p.Shapes[i] = own.Movable[i].PodShape
	}
	for i := len(own.Movable); i < len(p.Shapes); i++ {
		p.Shapes[i].Namespace = tenant + p.Shapes[i].Namespace
		inNamespacesOf(p.Shapes[i].AntiAffinity, tenant)
	}
}

func (d *dice) settlePods(c *model.PodClass, mine model.Requirement, tenant string) {
	c.Namespace = tenant + c.Namespace
	for i := range c.Pods {
		c.Pods[i].Namespace = c.Namespace
	}
	if !d.once(20) {
		c.NodeRequirements = append(c.NodeRequirements, mine)
	}
	for i := range c.Spread { // others are in one part with all
		c.Spread[i].HonorNodeAffinity = c.Spread[i].HonorNodeAffinity || !d.once(6)
		c.Spread[i].HonorTaints = c.Spread[i].HonorTaints || !d.once(6)
	}
	inNamespacesOf(c.Affinity, tenant)
	inNamespacesOf(c.AntiAffinity, tenant)
	for i := range c.Preferences {
		inNamespacesOf([]model.AffinityTerm{c.Preferences[i].Term}, tenant)
	}
}

// inNamespacesOf puts the namespaces of a tenant in the place of those of terms.
func inNamespacesOf(terms []model.AffinityTerm, tenant string) {
	for _, t := range terms {
		for i := range t.Namespaces {
			t.Namespaces[i] = tenant + t.Namespaces[i]
		}
	}
}

// join adds a fleet to another one.
func join(all, own *model.DisruptionProblem) {
	a, p := all.Problem, own.Problem
	for i := range p.Pools {
		p.Pools[i].Catalog += len(a.Catalogs)
	}
	for i := range p.Nodes {
		for k := range p.Nodes[i].Bound {
			p.Nodes[i].Bound[k].Shape += len(a.Shapes)
		}
		if own.Usages[i].Policy >= 0 {
			own.Usages[i].Policy += len(all.Policies)
		}
		for k := range own.Usages[i].Pods {
			own.Usages[i].Pods[k].Class += len(all.Movable)
		}
		for _, p := range own.Usages[i].DaemonPods {
			for k := range p.Budgets {
				p.Budgets[k] += len(all.Budgets)
			}
		}
	}
	for i := range own.Movable {
		for k := range own.Movable[i].Budgets {
			own.Movable[i].Budgets[k] += len(all.Budgets)
		}
	}
	a.Catalogs, a.Pools, a.Nodes = append(a.Catalogs, p.Catalogs...), append(a.Pools, p.Pools...), append(a.Nodes, p.Nodes...)
	a.Shapes, a.Classes = append(a.Shapes, p.Shapes...), append(a.Classes, p.Classes...)
	all.Movable, all.Usages = append(all.Movable, own.Movable...), append(all.Usages, own.Usages...)
	all.Budgets, all.Policies = append(all.Budgets, own.Budgets...), append(all.Policies, own.Policies...)
}

// What is planned in parts breaks no rule of the whole and is silent about no node, and its
// bound holds for answers of the whole, as theirs for it. Its commands stand when they are
// looked at in their parts.
func TestCommandsOfPartsAreThoseOfTheWhole(t *testing.T) {
	inParts, commands := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt}
		f := d.tenants()
		if shared := d.once(3); shared && len(f.Problem.Pools) > 0 {
			d.share(f)
		}
		f.Problem.Policy.Budget = pick(d, 0, 5*time.Millisecond)
		if consolidate.Parts(f) == 0 {
			return
		}
		inParts++
		moves := consolidate.PlanInParts(f)
		commands += len(moves.Commands)
		for _, v := range verify.CheckMoves(f, moves) {
			rt.Errorf("%s", v)
		}
		if whole := consolidate.Plan(f); f.Bound && !forced(moves) && !forced(whole) { // bounds leave out nodes that must go
			if moves.LowerBound > whole.After || whole.LowerBound > moves.After {
				rt.Errorf("%s after all commands, at least %s; as a whole %s, at least %s", moves.After, moves.LowerBound, whole.After, whole.LowerBound)
			}
		}
		if len(moves.Commands) == 0 {
			return
		}
		first := intentOf(f, &moves.Commands[0])
		got, want := objections(consolidate.RecheckInParts(f, first)), objections(consolidate.Recheck(f, first))
		if !slices.Equal(got, want) && len(first.Replacements) == 0 {
			rt.Errorf("objections in its parts: %v, in the whole: %v", got, want)
		}
	})
	if t.Logf("%d answers in parts, with %d commands", inParts, commands); commands < 10 {
		t.Errorf("only %d answers in parts, with %d commands", inParts, commands)
	}
}

// forced reports whether a node must go, whatever that costs.
func forced(moves *model.Commands) bool {
	return slices.ContainsFunc(moves.Commands, func(c model.Command) bool {
		return c.Reason != model.DisruptEmpty && c.Reason != model.DisruptUnderutilized
	})
}

// objections are nodes and reasons.
func objections(all []consolidate.Objection) []string {
	var out []string
	for _, o := range all {
		out = append(out, o.Node+" "+string(o.Reason))
	}
	return out
}
