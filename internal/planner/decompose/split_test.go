package decompose

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// two tenants with a NodePool, a node and a class each.
func tenants() *model.Problem {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
		{Name: "d2", Capacity: model.Resources{2000}, Offerings: []model.Offering{{Zone: "z1", Price: 1}, {Zone: "z2", Price: 1}}},
	}}}}
	for i := range 2 {
		tenant := fmt.Sprint("t", i)
		mine := model.Requirements{{Key: "tenant", Operator: model.In, Values: []string{tenant}}}
		p.Pools = append(p.Pools, model.Pool{Name: tenant, NodeLimit: -1, Requirements: mine})
		p.Nodes = append(p.Nodes, model.Node{Name: tenant, State: model.NodeReady, Labels: map[string]string{"tenant": tenant}})
		p.Classes = append(p.Classes, model.PodClass{
			Pods:     make([]model.PodRef, 3-i),
			PodShape: model.PodShape{Namespace: tenant, Labels: map[string]string{"app": "web"}},
			PodRules: model.PodRules{NodeRequirements: mine},
		})
	}
	return p
}

// oneForAll makes the NodePools of tenants one, which leaves the tenant to its machines.
func oneForAll(p *model.Problem) {
	p.Pools = []model.Pool{{Name: "all", NodeLimit: -1, Requirements: model.Requirements{{Key: "tenant", Operator: model.Exists}}}}
}

// A NodePool with an open label is in the part of each of its values.
func TestPartsShareOneNodePool(t *testing.T) {
	p := tenants()
	oneForAll(p)
	parts := Split(p, 4) // two offerings for each of two values
	if len(parts) != 2 || Split(p, 5) != nil {
		t.Fatalf("got %d parts, want 2 from four offerings on", len(parts))
	}
	for i := range parts {
		if own := parts[i].Problem; len(own.Pools) != 1 || own.Pools[0].Name != "all" || len(own.Classes) != 1 || len(own.Nodes) != 1 {
			t.Errorf("part %d: NodePools %v, %d classes, %d nodes", i, own.Pools, len(own.Classes), len(own.Nodes))
		}
	}
}

func TestWhatRelatesPodsIsPlannedTogether(t *testing.T) {
	web := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}}
	near := model.AffinityTerm{TopologyKey: model.LabelZone, Selector: web, Namespaces: []string{"t0"}}
	everywhere := model.AffinityTerm{TopologyKey: model.LabelZone, Selector: web, AllNamespaces: true}
	strict := model.SpreadConstraint{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: web, Hard: true, HonorNodeAffinity: true, HonorTaints: true}
	lax := strict
	lax.HonorNodeAffinity = false
	untainted := strict
	untainted.HonorTaints = false
	taint := []model.Taint{{Key: "tenant", Value: "t1", Effect: model.NoSchedule}}
	for name, c := range map[string]struct {
		change func(p *model.Problem)
		parts  int
	}{
		"nothing":                         {func(*model.Problem) {}, 2},
		"a class that any NodePool suits": {func(p *model.Problem) { p.Classes[0].NodeRequirements = nil }, 0},
		"a node that suits both": {func(p *model.Problem) {
			p.Pools[1].Taints, p.Nodes[1].Labels["tenant"] = taint, "t0"
			p.Classes[1].NodeRequirements = nil
			p.Classes[1].Tolerations = []model.Toleration{{Key: "tenant", Exists: true}}
			p.Pools[0].Taints = []model.Taint{{Key: "other", Effect: model.NoSchedule}}
		}, 0},
		"affinity to the other's pods":      {func(p *model.Problem) { p.Classes[1].Affinity = []model.AffinityTerm{near} }, 0},
		"anti-affinity to pods everywhere":  {func(p *model.Problem) { p.Classes[0].AntiAffinity = []model.AffinityTerm{everywhere} }, 0},
		"a preference for the other's pods": {func(p *model.Problem) { p.Classes[1].Preferences = []model.AffinityPreference{{Term: near}} }, 0},
		"affinity to its own pods":          {func(p *model.Problem) { p.Classes[0].Affinity = []model.AffinityTerm{near} }, 2},
		"a spread of its own pods":          {func(p *model.Problem) { p.Classes[0].Spread = []model.SpreadConstraint{strict} }, 2},
		"a spread over NodePools of all":    {func(p *model.Problem) { p.Classes[0].Spread = []model.SpreadConstraint{lax} }, 0},
		"a spread over tainted NodePools": {func(p *model.Problem) {
			p.Classes[0].NodeRequirements, p.Pools[1].Taints, p.Nodes[1].Taints = nil, taint, taint
			p.Classes[1].Tolerations = []model.Toleration{{Key: "tenant", Exists: true}}
			p.Classes[0].Spread = []model.SpreadConstraint{untainted}
		}, 0},
		"a spread that honors taints": {func(p *model.Problem) {
			p.Classes[0].NodeRequirements, p.Pools[1].Taints, p.Nodes[1].Taints = nil, taint, taint
			p.Classes[1].Tolerations = []model.Toleration{{Key: "tenant", Exists: true}}
			p.Classes[0].Spread = []model.SpreadConstraint{strict}
		}, 2},
		"a NodePool that no label keeps pods from": {func(p *model.Problem) {
			p.Pools = append(p.Pools, model.Pool{Name: "default", NodeLimit: -1})
		}, 2},
		"a NodePool that leaves the label open": {func(p *model.Problem) {
			p.Pools = append(p.Pools, model.Pool{Name: "any", NodeLimit: -1,
				Requirements: model.Requirements{{Key: "tenant", Operator: model.Exists}}})
		}, 2},
		"one NodePool that leaves the label open": {oneForAll, 2},
		"one NodePool for some tenants": {func(p *model.Problem) {
			oneForAll(p)
			p.Pools[0].Requirements[0] = model.Requirement{Key: "tenant", Operator: model.In, Values: []string{"t0", "t1"}}
		}, 2},
		"a class that minds no label of one NodePool": {func(p *model.Problem) {
			oneForAll(p)
			p.Classes = append(p.Classes, model.PodClass{Pods: make([]model.PodRef, 1)})
		}, 0},
		"a class that excludes a tenant": {func(p *model.Problem) {
			oneForAll(p)
			p.Classes = append(p.Classes, model.PodClass{PodRules: model.PodRules{NodeRequirements: model.Requirements{
				{Key: "tenant", Operator: model.NotIn, Values: []string{"t0"}},
			}}})
		}, 0},
		"a class that suits two tenants": {func(p *model.Problem) {
			oneForAll(p)
			p.Classes[0].NodeRequirements = model.Requirements{{Key: "tenant", Operator: model.In, Values: []string{"t0", "t1"}}}
		}, 0},
		"a spread over machines of all tenants": {func(p *model.Problem) {
			oneForAll(p)
			p.Classes[0].Spread = []model.SpreadConstraint{lax}
		}, 0},
		"a label that the cloud gives": {func(p *model.Problem) {
			p.Pools = append(p.Pools, model.Pool{Name: "default", NodeLimit: -1})
			p.Catalogs[0].InstanceTypes[0].Choices = map[string][]string{"tenant": {"t0", "t1"}}
		}, 0},
		"pods that name their NodePools": {func(p *model.Problem) {
			for i := range p.Classes {
				p.Pools[i].Requirements = nil
				p.Classes[i].NodeRequirements = model.Requirements{{Key: model.LabelNodePool, Operator: model.In, Values: []string{p.Pools[i].Name}}}
			}
			p.Nodes = nil
		}, 2},
		"one class": {func(p *model.Problem) { p.Classes = p.Classes[:1] }, 0},
	} {
		p := tenants()
		c.change(p)
		if parts := Split(p, 0); len(parts) != c.parts {
			t.Errorf("%s: got %d parts, want %d", name, len(parts), c.parts)
		}
	}
}

// Small problems are not divided.
func TestLargeProblemsAreDivided(t *testing.T) {
	p := tenants()
	for i := range 20 {
		more := tenants()
		for j := range more.Pools {
			own := model.Requirements{{Key: "tenant", Operator: model.In, Values: []string{fmt.Sprint(i, "-", j)}}}
			more.Pools[j].Requirements, more.Classes[j].NodeRequirements = own, own
		}
		p.Pools, p.Classes = append(p.Pools, more.Pools...), append(p.Classes, more.Classes...)
	}
	for from, want := range map[int]int{0: 42, 84: 42, 85: 0} {
		if parts := Split(p, from); len(parts) != want {
			t.Errorf("from %d: got %d parts, want %d", from, len(parts), want)
		}
	}
}

// Parts share the time of a plan by their pods: each has its own where work is counted in
// steps, and ends when it is its turn to end where a clock runs.
func TestPartsShareTheBudget(t *testing.T) {
	budgets := func(p *model.Problem) (out []time.Duration) {
		for _, part := range Split(p, 0) {
			out = append(out, part.Problem.Policy.Budget)
		}
		return out
	}
	p := tenants() // three pods and two
	p.Policy.Budget = 50 * time.Millisecond
	if got := budgets(p); got[0] != 30*time.Millisecond || got[1] != 20*time.Millisecond {
		t.Errorf("in steps: %s", got)
	}
	p.Policy.Elapsed = func() time.Duration { return 0 }
	if got := budgets(p); got[0] != 30*time.Millisecond || got[1] != 50*time.Millisecond {
		t.Errorf("by the clock: %s", got)
	}
	p.Policy = model.Policy{}
	if got := budgets(p); got[0] != 0 || got[1] != 0 {
		t.Errorf("without a budget: %s", got)
	}
}

// Pods that run where a part has no place count for it, and none else.
func TestPartHasNodesWhosePodsCount(t *testing.T) {
	web := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}}
	own := model.SpreadConstraint{TopologyKey: model.LabelZone, MaxSkew: 1, Selector: web, Hard: true, HonorNodeAffinity: true, HonorTaints: true}
	near := model.AffinityTerm{TopologyKey: model.LabelZone, Selector: web, Namespaces: []string{"elsewhere"}}
	repels := near
	repels.Namespaces = []string{"t1"}
	p := tenants()
	p.Shapes = []model.PodShape{
		{Namespace: "t1", Labels: map[string]string{"app": "web"}},
		{Namespace: "elsewhere", Labels: map[string]string{"app": "web"}},
		{Namespace: "any", AntiAffinity: []model.AffinityTerm{repels}},
		{Namespace: "t1", Labels: map[string]string{"app": "db"}},
	}
	for i := range p.Shapes {
		p.Nodes = append(p.Nodes, model.Node{Name: fmt.Sprint("n", i), Bound: []model.BoundPods{{Shape: i, Count: 1}}})
	}
	for want, change := range map[string]func(c *model.PodClass){
		"[t1 n2]":    func(*model.PodClass) {},
		"[t1 n0 n2]": func(c *model.PodClass) { c.Spread = []model.SpreadConstraint{own} },
		"[t1 n1 n2]": func(c *model.PodClass) { c.Affinity = []model.AffinityTerm{near} },
	} {
		c := p.Classes[1]
		change(&p.Classes[1])
		var names []string
		for _, n := range Split(p, 0)[1].Problem.Nodes {
			names = append(names, n.Name)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("got nodes %s, want %s", got, want)
		}
		p.Classes[1] = c
	}
}

// What no class can use is still looked at once, for what is wrong with it.
func TestUnusedNodePoolsAreInOnePart(t *testing.T) {
	p := tenants()
	p.Pools = append(p.Pools, model.Pool{Name: "unused", Requirements: model.Requirements{{Key: "tenant", Operator: model.In, Values: []string{"t9"}}}})
	p.Nodes = append(p.Nodes, model.Node{Name: "unused", Taints: []model.Taint{{Key: "x", Effect: model.NoSchedule}}})
	pools, nodes := map[string]int{}, map[string]int{}
	for _, part := range Split(p, 0) {
		for i := range part.Problem.Pools {
			pools[part.Problem.Pools[i].Name]++
		}
		for i := range part.Problem.Nodes {
			nodes[part.Problem.Nodes[i].Name]++
		}
	}
	for _, counts := range []map[string]int{pools, nodes} {
		if len(counts) != 3 || counts["t0"] != 1 || counts["t1"] != 1 || counts["unused"] != 1 {
			t.Errorf("NodePools %v, nodes %v", pools, nodes)
		}
	}
}
