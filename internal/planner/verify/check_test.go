package verify

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

const gi = 1 << 30

// sound is a problem and a plan for it that breaks no rule: two zones, a tainted
// pool, a node, pods that spread and pods that refuse each other.
func sound() (*model.Problem, *model.Plan) {
	app := func(name string) *model.Selector {
		return &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{name}}}}
	}
	class := func(name string, n int) model.PodClass {
		c := model.PodClass{Requests: model.Resources{1000, gi, 0, 1}}
		c.Namespace, c.Labels = "default", map[string]string{"app": name}
		for range n {
			c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: name})
		}
		return c
	}
	web, db, ports := class("web", 2), class("db", 2), class("ports", 1)
	web.Spread = []model.SpreadConstraint{{
		TopologyKey: model.LabelZone, MaxSkew: 1, Selector: app("web"), Hard: true, HonorNodeAffinity: true,
	}}
	db.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: app("db"), Namespaces: []string{"default"}}}
	db.Tolerations = []model.Toleration{{Key: "gpu", Exists: true}}
	ports.HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
	ports.NodeRequirements = model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}}
	offering := func(zone string) model.Offering {
		return model.Offering{
			Zone: zone, CapacityType: model.OnDemand, Price: 100, Available: true, Quotas: []model.QuotaUse{{Quota: "cores", Amount: 4}},
		}
	}
	limit := model.Money(250)
	p := &model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
			Name: "d4", Capacity: model.Resources{4000, 16 * gi, 0, 10}, Offerings: []model.Offering{offering("z1"), offering("z2")},
		}}}},
		Pools: []model.Pool{
			{Name: "default", CostLimit: &limit, Cost: 50, NodeLimit: 2, Limits: []model.Limit{{Axis: model.CPU, Value: 8000}}},
			{Name: "gpu", NodeLimit: -1, Taints: []model.Taint{{Key: "gpu", Effect: model.NoSchedule}}},
		},
		Nodes: []model.Node{{
			Name: "n1", State: model.NodeReady, Labels: map[string]string{model.LabelZone: "z1"}, Allocatable: model.Resources{4000, 16 * gi, 0, 10},
		}},
		Quotas:  []model.Quota{{Name: "cores", Left: 12}},
		Classes: []model.PodClass{web, db, ports},
	}
	machine := func(pool, zone int, pods ...model.ClassPods) model.NewNode {
		return model.NewNode{
			Pool: pool, Offerings: []model.OfferingRef{{Offering: zone, Price: 100}}, Pods: pods,
		}
	}
	return p, &model.Plan{
		NewNodes: []model.NewNode{
			machine(0, 0, model.ClassPods{Class: 0, Pods: []int{0}}),
			machine(0, 1, model.ClassPods{Class: 0, Pods: []int{1}}, model.ClassPods{Class: 1, Pods: []int{0}}),
			machine(1, 1, model.ClassPods{Class: 1, Pods: []int{1}}),
		},
		Placements: []model.Placement{{Node: 0, Pods: []model.ClassPods{{Class: 2, Pods: []int{0}}}}},
		Cost:       300, LowerBound: 200,
	}
}

func TestCheckAcceptsValidPlan(t *testing.T) {
	p, plan := sound()
	for _, v := range Check(p, plan) {
		t.Errorf("%s", v)
	}
}

func TestCheckFindsEveryBrokenRule(t *testing.T) {
	for rule, spoil := range map[string]func(*model.Problem, *model.Plan){
		"every pod once": func(_ *model.Problem, plan *model.Plan) { plan.Placements = nil },
		"resources":      func(p *model.Problem, _ *model.Plan) { p.Classes[0].Requests[model.CPU] = 4001 },
		"node selector":  func(p *model.Problem, _ *model.Plan) { p.Classes[2].NodeRequirements[0].Values[0] = "z2" },
		"node affinity": func(p *model.Problem, _ *model.Plan) {
			p.Classes[2].NodeAlternatives = []model.Requirements{{{Key: "x", Operator: model.Exists}}}
		},
		"volume topology": func(p *model.Problem, _ *model.Plan) {
			p.Classes[2].VolumeAlternatives = []model.Requirements{{{Key: "x", Operator: model.Exists}}}
		},
		"taints": func(p *model.Problem, _ *model.Plan) { p.Classes[1].Tolerations = nil },
		"host ports": func(p *model.Problem, _ *model.Plan) {
			p.Nodes[0].HostPorts = []model.HostPort{{Port: 80, Protocol: "TCP"}}
		},
		"volume slots": func(p *model.Problem, _ *model.Plan) {
			p.Nodes[0].VolumeSlots = map[string]int{"disk": 1} // each disk of a pod's own takes one
			p.Classes[2].Volumes = []model.Volume{{Driver: "disk"}, {Driver: "disk"}}
		},
		"leaving": func(p *model.Problem, _ *model.Plan) { p.Nodes[0].State = model.NodeLeaving },
		"limits":  func(p *model.Problem, _ *model.Plan) { p.Pools[0].Limits[0].Value = 7999 },
		"quotas":  func(p *model.Problem, _ *model.Plan) { p.Quotas[0].Left = 11 },
		"reservations": func(p *model.Problem, _ *model.Plan) {
			p.Catalogs[0].InstanceTypes[0].Offerings[0].CapacityType = model.Reserved
		},
		"availability": func(p *model.Problem, _ *model.Plan) { p.Catalogs[0].InstanceTypes[0].Offerings[0].Available = false },
		"pool requirements": func(p *model.Problem, _ *model.Plan) {
			p.Pools[0].Requirements = model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}}
		},
		"minValues": func(p *model.Problem, _ *model.Plan) {
			p.Pools[0].Requirements = model.Requirements{{Key: model.LabelZone, Operator: model.Exists, MinValues: 2}}
		},
		"alternatives": func(_ *model.Problem, plan *model.Plan) { plan.NewNodes[0].Offerings[0].Price = 1 },
		"cost":         func(_ *model.Problem, plan *model.Plan) { plan.Cost = 299 },
		"lower bound":  func(_ *model.Problem, plan *model.Plan) { plan.LowerBound = 301 },
		"pinned domains": func(_ *model.Problem, plan *model.Plan) {
			plan.NewNodes[0].Offerings = append(plan.NewNodes[0].Offerings, model.OfferingRef{Offering: 1, Price: 100})
		},
	} {
		p, plan := sound()
		spoil(p, plan)
		if !broken(Check(p, plan), rule) {
			t.Errorf("%s: not noticed, found %v", rule, Check(p, plan))
		}
	}
}

func TestCheckFindsPlanBeyondLimitInDollars(t *testing.T) {
	p, plan := sound()
	p.Pools[0].Cost++ // two machines at 100 then reach 251 of 250
	if found := Check(p, plan); !broken(found, "limits") {
		t.Errorf("not noticed, found %v", found)
	}
	plan.NewNodes, plan.Cost = plan.NewNodes[2:], 100 // what adds nothing to a pool beyond its limit is no violation
	p.Pools[0].Cost = 300
	if found := Check(p, plan); broken(found, "limits") {
		t.Errorf("a plan that buys nothing from the NodePool is refused: %v", found)
	}
}

func TestCheckRefusesLabelUnknownToPool(t *testing.T) {
	for operator, want := range map[model.Operator]bool{model.In: true, model.NotIn: false} {
		p, plan := sound()
		plan.NewNodes[0].Requirements = model.Requirements{{Key: "team", Operator: operator, Values: []string{"red"}}}
		if got := broken(Check(p, plan), "pool requirements"); got != want {
			t.Errorf("team %s [red]: noticed %t, want %t", operator, got, want)
		}
	}
}

func TestCheckFindsBrokenTopology(t *testing.T) {
	for want, spoil := range map[string]func(*model.Problem, *model.Plan){
		"spread over topology.kubernetes.io/zone exceeded": func(_ *model.Problem, plan *model.Plan) {
			plan.NewNodes[1].Offerings[0].Offering = 0
		},
		"anti-affinity on kubernetes.io/hostname broken": func(_ *model.Problem, plan *model.Plan) {
			plan.NewNodes[1].Pods[1].Pods = []int{0, 1}
			plan.NewNodes, plan.Cost = plan.NewNodes[:2], 200
		},
		"another pod's anti-affinity": func(p *model.Problem, _ *model.Plan) {
			p.Shapes = []model.PodShape{{Namespace: "default", AntiAffinity: []model.AffinityTerm{{
				TopologyKey: model.LabelZone, Selector: &model.Selector{}, AllNamespaces: true,
			}}}}
			p.Nodes[0].Bound = []model.BoundPods{{Shape: 0, Count: 1}}
		},
		"affinity not met": func(p *model.Problem, _ *model.Plan) {
			p.Classes[2].Affinity = []model.AffinityTerm{{
				TopologyKey: model.LabelHostname, Selector: &model.Selector{}, Namespaces: []string{"elsewhere"},
			}}
		},
	} {
		p, plan := sound()
		spoil(p, plan)
		found := false
		for _, v := range Check(p, plan) {
			found = found || strings.Contains(v.Message, want)
		}
		if !found {
			t.Errorf("%s: not noticed, found %v", want, Check(p, plan))
		}
	}
}

func broken(violations []Violation, rule string) bool {
	for _, v := range violations {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

func TestOptimumOfTinyProblem(t *testing.T) {
	p, _ := sound()
	best := Cheapest(p)
	// web needs a place in each zone; the node in z1 takes one web, one db and
	// ports, so that one machine in z2 is enough for the rest.
	if best.Unschedulable != 0 || best.Cost != 100 {
		t.Errorf("got %d left out at %s, want none at $0.0001/h", best.Unschedulable, best.Cost)
	}
	if found := Check(p, best.Plan); len(found) > 0 {
		t.Errorf("the optimum breaks rules: %v", found)
	}
}

func TestCheckNewNodeWithUndecidedZone(t *testing.T) {
	term := model.AffinityTerm{TopologyKey: model.LabelZone, Selector: &model.Selector{}, Namespaces: []string{"default"}}
	other := func(class int) model.AffinityTerm {
		term := term
		term.Selector = &model.Selector{Requirements: model.Requirements{{
			Key: "app", Operator: model.In, Values: []string{[]string{"db", "web"}[class]},
		}}}
		return term
	}
	apart := func(class int) func(*model.Problem) {
		return func(p *model.Problem) { p.Classes[class].AntiAffinity = []model.AffinityTerm{term} }
	}
	near := func(class int) func(*model.Problem) {
		return func(p *model.Problem) { p.Classes[class].Affinity = []model.AffinityTerm{other(class)} }
	}
	for _, c := range []struct {
		name   string
		change func(*model.Problem)
		spread bool
		want   string
	}{
		{name: "nobody asks", change: func(*model.Problem) {}},
		{name: "the machine's pod stays away", change: apart(1), want: "anti-affinity on topology.kubernetes.io/zone broken"},
		{name: "the node's pod stays away", change: apart(0), want: "anti-affinity on topology.kubernetes.io/zone broken"},
		{name: "the machine's pod is near", change: near(1), want: "affinity not met"},
		{name: "the node's pod is near", change: near(0), want: "affinity not met"},
		{name: "the machine's pod spreads", change: func(*model.Problem) {}, spread: true, want: "may be bought in [z1 z2]"},
		{name: "one of the zones has no name", change: func(p *model.Problem) {
			p.Catalogs[0].InstanceTypes[0].Offerings[1].Zone = ""
			p.Nodes[0].Labels = nil
			apart(1)(p)
		}, want: "may be bought in [z1 ]"},
	} {
		p, plan := sound()
		// On the node one pod, on a machine of either zone another.
		p.Classes = p.Classes[:2]
		for i := range p.Classes {
			p.Classes[i].Pods, p.Classes[i].AntiAffinity = p.Classes[i].Pods[:1], nil
		}
		spread := p.Classes[0].Spread
		p.Classes[0].Spread = nil
		if c.spread {
			p.Classes[1].Spread = spread
		}
		c.change(p)
		plan.Placements = []model.Placement{{Node: 0, Pods: []model.ClassPods{{Class: 0, Pods: []int{0}}}}}
		plan.NewNodes = []model.NewNode{{
			Offerings: []model.OfferingRef{{Offering: 0, Price: 100}, {Offering: 1, Price: 100}},
			Pods:      []model.ClassPods{{Class: 1, Pods: []int{0}}},
		}}
		plan.Cost, plan.LowerBound = 100, 0
		found := Check(p, plan)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) == 0 || !strings.Contains(found[0].Message, c.want)) {
			t.Errorf("%s: found %v, want %q", c.name, found, c.want)
		}
	}
}
