package planner_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// onHosts draws a tiny problem of pods which spread over hosts, now and then over zones, too,
// beside nodes of all states, some of which are full or tainted.
func (d *dice) onHosts() *model.Problem {
	p := &model.Problem{
		Axes: model.NewAxes(), Policy: model.Policy{Budget: time.Millisecond}, Pools: []model.Pool{{Name: "pool", NodeLimit: -1}},
		Shapes: []model.PodShape{{Namespace: "default", Labels: map[string]string{"app": "a"}}},
	}
	catalog := model.Catalog{}
	for _, cores := range []int64{2, 4}[:1+d.upTo(1)] {
		catalog.InstanceTypes = append(catalog.InstanceTypes, model.InstanceType{
			Name: fmt.Sprint("d", cores), Capacity: model.Resources{cores * 1000, 16 * gi, 100 * gi, 10},
			Offerings: []model.Offering{
				{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.05 * float64(cores)), Available: true},
				{Zone: "z2", CapacityType: model.OnDemand, Price: model.USD(0.06 * float64(cores)), Available: true},
			},
		})
	}
	p.Catalogs = []model.Catalog{catalog}
	for i := range 1 + d.upTo(2) {
		name := fmt.Sprint("node", i)
		n := model.Node{
			Name: name, State: pick(d, model.NodeReady, model.NodeReady, model.NodeReady, model.NodeRegistered, model.NodeLaunching, model.NodeLeaving),
			Allocatable: model.Resources{4000, 16 * gi, 100 * gi, 10},
			Labels:      map[string]string{model.LabelHostname: name, model.LabelZone: pick(d, "z1", "z2"), model.LabelCapacityType: "on-demand"},
			Used:        model.Resources{pick[int64](d, 0, 0, 1000, 2000, 4000), 0, 0, 2},
		}
		if d.once(6) {
			n.Taints = []model.Taint{{Key: "system", Effect: model.NoSchedule}}
		}
		if k := d.upTo(2); k > 0 {
			n.Bound = []model.BoundPods{{Shape: 0, Count: k}}
		}
		p.Nodes = append(p.Nodes, n)
	}
	for i, pods := range [][]int{{2}, {3}, {4}, {5}, {1, 2}, {2, 2}}[d.upTo(5)] {
		c := d.spread(i, pods)
		c.NodeRequirements, c.AntiAffinity = nil, nil
		c.Spread = []model.SpreadConstraint{{
			TopologyKey: model.LabelHostname, MaxSkew: int32(1 + d.upTo(1)), MinDomains: int32(d.upTo(3)), Hard: true, HonorTaints: d.once(2),
			Selector: &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{pick(d, "a", "a", "b")}}}},
		}}
		if d.once(3) {
			zones := c.Spread[0]
			zones.TopologyKey, zones.MinDomains = model.LabelZone, int32(d.upTo(2))
			c.Spread = append(c.Spread, zones)
		}
		p.Classes = append(p.Classes, c)
	}
	return p
}

// Plans of few pods which spread over hosts are what the scheduler would do, leave no pod out for
// which there is a place, cost what they must, and are bound by no more.
func TestPlansOfPodsSpreadOverHosts(t *testing.T) {
	plans, optimal, proven := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := (&dice{T: rt, tiny: true}).onHosts()
		plan := planner.Solve(p)
		for _, v := range verify.Check(p, plan) {
			rt.Fatalf("%s\n%s", v, describe(p, plan))
		}
		if more := verify.CouldAdd(p, plan); more != "" {
			rt.Fatalf("%s\n%s", more, describe(p, plan))
		}
		best := verify.Cheapest(p)
		if best.Unschedulable > 0 || len(plan.Unschedulable) > 0 {
			return
		}
		if bound := planner.BoundOfAll(p); bound > best.Cost || plan.LowerBound > best.Cost {
			rt.Fatalf("the bound %s or %s is above the optimum %s\n%s", bound, plan.LowerBound, best.Cost, describe(p, best.Plan))
		}
		if plans++; plan.Cost == best.Cost {
			optimal++
		}
		if plan.LowerBound == plan.Cost {
			proven++
		}
	})
	t.Logf("of %d plans %d are optimal and %d proven to be", plans, optimal, proven)
	if plans < 30 || optimal*20 < plans*19 || proven*2 < plans {
		t.Errorf("of %d plans %d are optimal and %d proven to be", plans, optimal, proven)
	}
}

// A cap that only another class's constraint sets, or a larger one of its own, is no proof: in
// another order the pods share a node.
func TestBoundsOfPodsThatOthersSpreadFrom(t *testing.T) {
	for name, honored := range map[string]bool{"one counter with two skews": false, "a counter of others": true} {
		app := func(i, pods int, of string, cpu int64, skew int32) model.PodClass {
			c := model.PodClass{
				Owner: fmt.Sprint("Deployment default/", i), PodShape: model.PodShape{Namespace: "default", Labels: map[string]string{"app": of}},
				Requests: model.Resources{cpu, gi, 0, 1},
			}
			for k := range pods {
				c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("p%d-%d", i, k)})
			}
			c.Spread = []model.SpreadConstraint{{
				TopologyKey: model.LabelHostname, MaxSkew: skew, Hard: true, HonorTaints: honored && of == "a",
				Selector: &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"a"}}}},
			}}
			return c
		}
		p := &model.Problem{
			Axes: model.NewAxes(), Policy: model.Policy{Budget: time.Millisecond}, Pools: []model.Pool{{Name: "pool", NodeLimit: -1}},
			Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
				{Name: "d2", Capacity: model.Resources{2000, 16 * gi, 100 * gi, 10}, Offerings: []model.Offering{
					{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.1), Available: true}}},
				{Name: "d4", Capacity: model.Resources{4000, 16 * gi, 100 * gi, 10}, Offerings: []model.Offering{
					{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.2), Available: true}}},
			}}},
			Classes: []model.PodClass{app(0, 1, "b", 900, 1), app(1, 2, "a", 1500, 2)},
		}
		if honored { // taints tell the counters apart only where some node has one
			p.Nodes = []model.Node{{Name: "n", State: model.NodeReady, Labels: map[string]string{model.LabelHostname: "n"},
				Taints: []model.Taint{{Key: "system", Effect: model.NoSchedule}}, Allocatable: model.Resources{0, 0, 0, 0}}}
		}
		plan, best := planner.Solve(p), verify.Cheapest(p)
		if plan.LowerBound > best.Cost || best.Cost != model.USD(0.2) {
			t.Errorf("%s: the bound %s is above the optimum %s\n%s", name, plan.LowerBound, best.Cost, describe(p, plan))
		}
	}
}
