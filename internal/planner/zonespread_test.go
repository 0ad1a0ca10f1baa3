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

// spreading draws a tiny problem of pods which spread over zones or keep apart in them, now
// and then beside nodes on which some of them run.
func (d *dice) spreading() *model.Problem {
	p := &model.Problem{
		Axes: model.NewAxes(), Policy: model.Policy{Budget: time.Millisecond}, Pools: []model.Pool{{Name: "pool", NodeLimit: -1}},
		Shapes: []model.PodShape{{Namespace: "default", Labels: map[string]string{"app": "a"}}},
	}
	catalog, zones := model.Catalog{}, 2+d.upTo(1)
	for _, cores := range []int64{2, 4}[:1+d.upTo(1)] {
		t := model.InstanceType{Name: fmt.Sprint("d", cores), Capacity: model.Resources{cores * 1000, 16 * gi, 100 * gi, 10}}
		for z := range zones {
			price := model.USD(0.05 * float64(cores) * pick(d, 1, 1, 1.5))
			t.Offerings = append(t.Offerings, model.Offering{Zone: fmt.Sprint("z", z+1), CapacityType: model.OnDemand, Price: price, Available: true})
		}
		catalog.InstanceTypes = append(catalog.InstanceTypes, t)
	}
	p.Catalogs = []model.Catalog{catalog}
	for i := range d.upTo(2) {
		name := fmt.Sprint("node", i)
		n := model.Node{
			Name: name, State: model.NodeReady, Allocatable: model.Resources{4000, 16 * gi, 100 * gi, 10},
			Labels: map[string]string{model.LabelHostname: name, model.LabelZone: pick(d, "z1", "z2", "z3"), model.LabelCapacityType: "on-demand"},
			Used:   model.Resources{int64(d.upTo(8)) * 500, 0, 0, 2},
		}
		if k := d.upTo(2); k > 0 {
			n.Bound = []model.BoundPods{{Shape: 0, Count: k}}
		}
		p.Nodes = append(p.Nodes, n)
	}
	for i, pods := range [][]int{{1}, {2}, {3}, {4}, {1, 2}, {2, 2}}[d.upTo(5)] {
		p.Classes = append(p.Classes, d.spread(i, pods))
	}
	return p
}

// spread draws a class of pods for spreading.
func (d *dice) spread(i, pods int) model.PodClass {
	app := pick(d, "a", "b")
	c := model.PodClass{
		Owner: fmt.Sprint("Deployment default/", i), PodShape: model.PodShape{Namespace: "default", Labels: map[string]string{"app": app}},
		Requests: model.Resources{pick[int64](d, 400, 900, 1500), gi, 0, 1},
	}
	for k := range pods {
		c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("p%d-%d", i, k)})
	}
	selected := app
	if d.once(5) {
		selected = pick(d, "a", "b")
	}
	selector := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{selected}}}}
	switch d.upTo(3) {
	case 0, 1:
		c.Spread = []model.SpreadConstraint{{
			TopologyKey: model.LabelZone, MaxSkew: int32(1 + d.upTo(1)), MinDomains: int32(d.upTo(3)), Selector: selector, Hard: true,
			HonorNodeAffinity: d.once(2),
		}}
	case 2:
		c.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelZone, Selector: selector, Namespaces: []string{"default"}}}
	}
	if d.once(5) {
		c.NodeRequirements = model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1", pick(d, "z2", "z3")}}}
	}
	return c
}

// Bounds of few pods count what each zone takes: they are never above the optimum, and most
// are the optimum.
func TestBoundsOfPodsSpreadOverZones(t *testing.T) {
	placed, proven := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &dice{T: rt, tiny: true}
		p := d.spreading()
		best := verify.Cheapest(p)
		if best.Unschedulable > 0 {
			return
		}
		bound := planner.BoundOfAll(p)
		if bound > best.Cost {
			rt.Fatalf("the bound %s is above the optimum %s\n%s", bound, best.Cost, describe(p, best.Plan))
		}
		if placed++; bound == best.Cost {
			proven++
		}
	})
	if proven*4 < placed*3 {
		t.Errorf("%d of %d bounds are the optimum", proven, placed)
	}
	t.Logf("%d of %d bounds are the optimum", proven, placed)
}
