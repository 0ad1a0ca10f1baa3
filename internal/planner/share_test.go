package planner_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// No node gets more pods of a workload than its share while they have a place elsewhere,
// and no pod is left without a place for the sake of a share.
func TestSolveKeepsSharesOfNodes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, peaceful: rapid.Bool().Draw(rt, "peaceful")}
		p := d.problem()
		p.Policy.Budget = pick(d, 0, 2*time.Millisecond)
		waiting := pending(planner.Solve(p))
		for i := range p.Classes {
			if d.once(2) {
				capClass(p, i, int32(1+d.upTo(1)))
			}
		}
		plan := planner.Solve(p)
		judge(rt, p, plan) // which counts the pods of each workload on each node
		if n := pending(plan); d.peaceful && n > waiting {
			rt.Fatalf("%d pods stay out with shares and %d without\n%s", n, waiting, describe(p, plan))
		}
	})
}

// capClass lets a node hold at most so many pods of a class, whatever the policy on
// preferences.
func capClass(p *model.Problem, class int, most int32) {
	c, name := &p.Classes[class], fmt.Sprint("workload-", class)
	labels := map[string]string{model.LabelWorkload: name}
	for k, v := range c.Labels {
		labels[k] = v
	}
	c.Labels = labels
	c.Spread = append(c.Spread, model.SpreadConstraint{
		TopologyKey: model.LabelHostname, MaxSkew: most, Share: true, Selector: &model.Selector{
			Requirements: model.Requirements{{Key: model.LabelWorkload, Operator: model.In, Values: []string{name}}},
		},
	})
}

func pending(plan *model.Plan) int {
	n := 0
	for _, u := range plan.Unschedulable {
		n += len(u.Pods)
	}
	return n
}

// The share costs money where machines for all pods would be cheaper, and it gives way
// where a limit leaves no other place, as the plan says.
func TestShareOfNodeGivesWayToPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		nodes         int
		machines      int
		relaxed       int
		ignorePrefers bool
	}{
		"no limit":                        {-1, 4, 0, false},
		"whatever is done of preferences": {-1, 4, 0, true},
		"a limit of two nodes":            {2, 2, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &model.Problem{
				Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: c.nodes}}, Policy: model.Policy{IgnorePreferences: c.ignorePrefers},
				Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
					Name: "d8", Capacity: model.Resources{8_000, 32 * gi, 0, 110},
					Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.4), Available: true}},
				}}}},
				Classes: []model.PodClass{{Requests: model.Resources{500, gi, 0, 1}, Owner: "Deployment default/web"}},
			}
			for i := range 8 {
				p.Classes[0].Pods = append(p.Classes[0].Pods, model.PodRef{Namespace: "default", Name: fmt.Sprint("web-", i)})
			}
			capClass(p, 0, 2)
			plan := planner.Solve(p)
			if len(plan.NewNodes) != c.machines || len(plan.Unschedulable) > 0 || len(plan.Relaxed) != c.relaxed {
				t.Errorf("%d machines, relaxed %v, waiting %v", len(plan.NewNodes), plan.Relaxed, plan.Unschedulable)
			}
			if c.relaxed > 0 && plan.Relaxed[0].Preference != model.ShareGivenUp {
				t.Errorf("given up is %q", plan.Relaxed[0].Preference)
			}
		})
	}
}
