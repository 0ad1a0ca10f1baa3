package decompose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// likeTenants has two tenants, each with a NodePool of two labels and a taint of its own, and two
// classes, of which one is spread.
func likeTenants() *model.Problem {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
		Name: "d4", Labels: map[string]string{"family": "d"}, Capacity: model.Resources{4000, 16 << 30, 0, 110},
		Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: 10, Available: true}},
	}}}}}
	for i := range 2 {
		name := fmt.Sprint("t", i)
		tenant := model.Requirement{Key: "tenant", Operator: model.In, Values: []string{name}}
		taint := model.Taint{Key: "of", Value: name, Effect: model.NoSchedule}
		p.Pools = append(p.Pools, model.Pool{
			Name: "pool-" + name, NodeLimit: -1, Labels: map[string]string{"tenant": name}, Taints: []model.Taint{taint}, StartupTaints: []model.Taint{taint},
			Requirements: model.Requirements{tenant, {Key: "shelf", Operator: model.In, Values: []string{name + "-a", name + "-b"}}},
			Daemons: []model.Daemon{{
				Name: "agent", Requests: model.Resources{100}, Requirements: []model.Requirements{{tenant}},
				Tolerations: []model.Toleration{{Key: "of", Value: name}},
			}},
		})
		for _, app := range []string{"web", "db"} {
			c := model.PodClass{Owner: "Deployment " + name + "/" + app, Requests: model.Resources{100, 100, 0, 1}}
			for n := range 3 {
				c.Pods = append(c.Pods, model.PodRef{Namespace: name, Name: fmt.Sprint(app, n)})
			}
			c.Namespace, c.Labels = name, map[string]string{"app": app + name}
			c.NodeRequirements = model.Requirements{tenant}
			c.Tolerations = []model.Toleration{{Key: "of", Value: name}}
			mine := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{app + name}}}}
			if app == "web" {
				c.Spread = []model.SpreadConstraint{{TopologyKey: "shelf", MaxSkew: 1, Hard: true, Selector: mine, HonorNodeAffinity: true, HonorTaints: true}}
			} else {
				c.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: mine, Namespaces: []string{name}}}
				c.Preferences = []model.AffinityPreference{{Weight: 1, Term: model.AffinityTerm{TopologyKey: model.LabelZone, Selector: mine}}}
			}
			c.NodePreferences = []model.NodePreference{{Weight: 1, Requirements: model.Requirements{
				{Key: model.LabelNodePool, Operator: model.In, Values: []string{"pool-" + name}},
			}}}
			p.Classes = append(p.Classes, c)
		}
	}
	return p
}

func TestPartsThatDifferInNamesAloneAreAlike(t *testing.T) {
	p := likeTenants()
	parts := Split(p, 0)
	if len(parts) != 2 {
		t.Fatalf("%d parts", len(parts))
	}
	alike := FindAlike(p, parts)
	if alike.First(0) != 0 || alike.First(1) != 0 {
		t.Errorf("first %d and %d, want 0 for both", alike.First(0), alike.First(1))
	}
}

// What a plan depends on makes parts different.
func TestPartsThatDifferInMoreThanNamesAreNotAlike(t *testing.T) {
	changes := map[string]func(p *model.Problem, pool *model.Pool, web, db *model.PodClass){
		"pods": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) { web.Pods = web.Pods[:2] },
		"requests": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) {
			web.Requests = model.Resources{200, 100, 0, 1}
		},
		"priority": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) { web.Priority = 1 },
		"host port": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) {
			web.HostPorts = []model.HostPort{{Port: 80}}
		},
		"volume":     func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) { web.Volumes = []model.Volume{{ID: "a"}} },
		"quarantine": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) { web.Quarantined = "slow" },
		"selector": func(_ *model.Problem, _ *model.Pool, web, db *model.PodClass) {
			web.Spread[0].Selector = db.AntiAffinity[0].Selector
		},
		"anti-affinity": func(_ *model.Problem, _ *model.Pool, _, db *model.PodClass) { db.AntiAffinity[0].Namespaces = nil },
		"preference": func(_ *model.Problem, _ *model.Pool, _, db *model.PodClass) {
			db.Preferences[0].Term.AllNamespaces = true
		},
		"skew": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) { web.Spread[0].MaxSkew = 2 },
		"topology key": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) {
			web.Spread[0].TopologyKey = model.LabelZone
		},
		"affinity": func(_ *model.Problem, _ *model.Pool, web, db *model.PodClass) { web.Affinity = db.AntiAffinity },
		"label of the cloud": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) {
			web.NodeRequirements = append(web.NodeRequirements, in("family", "d"))
		},
		"operator": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			pool.Requirements[1] = model.Requirement{Key: "shelf", Operator: model.Exists}
		},
		"same name twice": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			pool.Requirements[1].Values = []string{"x", "x"}
		},
		"minValues": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) { pool.Requirements[1].MinValues = 2 },
		"weight":    func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) { pool.Weight = 1 },
		"limit":     func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) { pool.NodeLimit = 9 },
		"no name": func(_ *model.Problem, pool *model.Pool, web, db *model.PodClass) {
			pool.Name = ""
			web.NodePreferences[0].Requirements[0].Values, db.NodePreferences[0].Requirements[0].Values = []string{""}, []string{""}
		},
		"toleration": func(_ *model.Problem, _ *model.Pool, web, _ *model.PodClass) {
			web.Tolerations = append(web.Tolerations, model.Toleration{Key: "also", Exists: true})
		},
		"taint": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			pool.Taints[0].Effect = model.PreferNoSchedule
		},
		"taint's value": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) { pool.StartupTaints[0].Value = "other" },
		"daemon": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			pool.Daemons[0].Requests = model.Resources{200}
		},
		"daemon's label": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			pool.Daemons[0].Requirements[0][0].Values = []string{"x"}
		},
		"daemon tolerates": func(_ *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			pool.Daemons[0].Tolerations = []model.Toleration{{Key: "of", Value: "other"}}
		},
		"node": func(p *model.Problem, pool *model.Pool, _, _ *model.PodClass) {
			p.Nodes = []model.Node{{Name: "n", Pool: pool.Name, Labels: map[string]string{"tenant": "t1"}, Taints: pool.Taints}}
		},
		"preferred NodePool": func(_ *model.Problem, _ *model.Pool, _, db *model.PodClass) {
			db.NodePreferences[0].Requirements[0].Values = []string{"another"}
		},
		"numbers of a label": func(_ *model.Problem, _ *model.Pool, web, db *model.PodClass) {
			for _, c := range []*model.PodClass{web, db} {
				c.NodePreferences[0].Requirements[0] = model.Requirement{Key: "shelf", Operator: model.Gt, Values: []string{"1"}}
			}
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			p := likeTenants()
			change(p, &p.Pools[1], &p.Classes[2], &p.Classes[3])
			alike := FindAlike(p, Split(p, 0))
			if alike.First(1) != 1 {
				t.Error("the second part is like the first one")
			}
		})
	}
}

// Values that are compared as numbers are no names, even where both parts compare.
func TestPartsWithOtherNumbersAreNotAlike(t *testing.T) {
	for name, compare := range map[string]func(c *model.PodClass, than string){
		"label": func(c *model.PodClass, than string) {
			c.NodePreferences[0].Requirements = model.Requirements{{Key: "tenant", Operator: model.Lt, Values: []string{than}}}
		},
		"taint": func(c *model.PodClass, than string) {
			c.Tolerations = append(c.Tolerations, model.Toleration{Key: "of", Compare: model.Gt, Value: than})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := likeTenants()
			for i := range p.Classes {
				compare(&p.Classes[i], []string{"1", "1", "2", "2"}[i])
			}
			if alike := FindAlike(p, Split(p, 0)); alike.First(1) != 1 {
				t.Error("the second part is like the first one")
			}
		})
	}
}

func in(key string, values ...string) model.Requirement {
	return model.Requirement{Key: key, Operator: model.In, Values: values}
}

func TestPlanOfAlikePartHasItsOwnNames(t *testing.T) {
	p := likeTenants()
	for i := range p.Pools { // in the other order of names
		shelves := p.Pools[i].Requirements[1].Values
		if i == 1 {
			shelves[0], shelves[1] = shelves[1], shelves[0]
		}
	}
	parts := Split(p, 0)
	alike := FindAlike(p, parts)
	if first, second := alike.Problem(0, parts[0].Problem), alike.Problem(1, parts[1].Problem); fmt.Sprint(first.Pools) != fmt.Sprint(second.Pools) {
		t.Errorf("NodePools with numbers differ: %+v, %+v", first.Pools, second.Pools)
	}
	of := &model.Plan{Cost: 10, NewNodes: []model.NewNode{{
		Requirements: model.Requirements{in("tenant", "0"), in("shelf", "0", "1"), in(model.LabelZone, "z1")},
		Pods:         []model.ClassPods{{Class: 0, Pods: []int{0, 1, 2}}},
	}}}
	got := alike.Plan(1, of)
	want := model.Requirements{in("tenant", "t1"), in("shelf", "t1-a", "t1-b"), in(model.LabelZone, "z1")}
	if fmt.Sprint(got.NewNodes[0].Requirements) != fmt.Sprint(want) || got.Cost != of.Cost || len(got.NewNodes[0].Pods) != 1 {
		t.Errorf("got %+v, want requirements %v", got, want)
	}
	if of.NewNodes[0].Requirements[0].Values[0] != "0" {
		t.Error("the plan with numbers has changed")
	}
	of.NewNodes[0].Requirements[1].Values = of.NewNodes[0].Requirements[1].Values[:1]
	if got := alike.Plan(1, of).NewNodes[0].Requirements[1].Values; !slices.Equal(got, []string{"t1-b"}) {
		t.Errorf("shelf %v stands for the first shelf, want t1-b", got)
	}
}

func TestPlanThatSaysMoreThanNamesIsOfOnePart(t *testing.T) {
	p := likeTenants()
	alike := FindAlike(p, Split(p, 0))
	for _, of := range []model.Plan{
		{Unschedulable: []model.Unschedulable{{}}}, {Rejected: []model.Rejection{{}}}, {Relaxed: []model.Relaxation{{}}},
		{Placements: []model.Placement{{}}},
	} {
		if got := alike.Plan(1, &of); got != nil {
			t.Errorf("%+v is a plan of the other part, too: %+v", of, got)
		}
	}
}
