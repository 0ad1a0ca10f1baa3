package feasible

import (
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

func in(key string, values ...string) model.Requirement {
	return model.Requirement{Key: key, Operator: model.In, Values: values}
}

func named(name string, rs ...model.Requirement) model.Pool {
	return model.Pool{Name: name, NodeLimit: -1, Requirements: append(model.Requirements{in(model.LabelNodePool, name)}, rs...)}
}

func asking(rs ...model.Requirement) model.PodClass {
	return model.PodClass{PodRules: model.PodRules{NodeRequirements: rs}}
}

// pruned are the names of the pools that prune leaves, and the compiler that it has told of
// the others.
func pruned(p *model.Problem, spare int) (string, *compiler) {
	if len(p.Catalogs) == 0 {
		p.Catalogs = make([]model.Catalog, 1)
	}
	k := &compiler{problem: p, dims: newDimensions(p), labels: newLabelCompiler(p), poolErrors: map[int]string{}}
	order := k.poolOrder()
	var names []string
	for _, i := range k.prune(order, k.compileCatalogs(order, nil), spare) {
		names = append(names, p.Pools[i].Name)
	}
	return strings.Join(names, " "), k
}

func TestNodePoolsThatNoClassCanUseAreLeftOut(t *testing.T) {
	tainted := named("tainted")
	tainted.Taints = []model.Taint{{Key: "team", Value: "a", Effect: model.NoSchedule}}
	soft := named("soft")
	soft.Taints = []model.Taint{{Key: "team", Value: "a", Effect: model.PreferNoSchedule}}
	tolerant := model.PodClass{PodRules: model.PodRules{Tolerations: []model.Toleration{{Key: "team", Exists: true}}}}
	teams := []model.Pool{named("a", in("team", "a")), named("any"), named("b", in("team", "b")), named("bc", in("team", "b", "c"))}
	notB := asking(model.Requirement{Key: "team", Operator: model.NotIn, Values: []string{"b"}})
	either := model.PodClass{PodRules: model.PodRules{NodeAlternatives: []model.Requirements{{in("team", "x")}, {in("team", "b")}}}}
	for name, c := range map[string]struct {
		pools   []model.Pool
		nodes   []model.Node
		classes []model.PodClass
		want    string
	}{
		"taints":                 {[]model.Pool{tainted, soft}, nil, []model.PodClass{asking()}, "soft"},
		"tolerated taints":       {[]model.Pool{tainted, soft}, nil, []model.PodClass{tolerant}, "tainted"},
		"a label":                {teams, nil, []model.PodClass{asking(in("team", "b"))}, "b bc"},
		"the absence of a value": {teams, nil, []model.PodClass{notB}, "a any bc"},
		"alternatives":           {teams, nil, []model.PodClass{either}, "b bc"},
		"two classes":            {teams, nil, []model.PodClass{asking(in("team", "a")), asking(in("team", "c"))}, "a bc"},
		"nodes":                  {teams, []model.Node{{Pool: "b"}}, []model.PodClass{asking(in("team", "a"))}, "a"},
		"a label of machines":    {[]model.Pool{named("any"), named("gen2", in("gen", "2"))}, nil, []model.PodClass{asking(in("gen", "1"))}, "any"},
		"a label left to buyers": {[]model.Pool{named("any")}, nil, []model.PodClass{asking(in("disk", "fast"))}, "any"},
		"a label of offerings":   {[]model.Pool{named("any")}, nil, []model.PodClass{asking(in("rack", "r1"))}, "any"},
		"a label left open":      {[]model.Pool{named("open", model.Requirement{Key: "team", Operator: model.Exists})}, nil, []model.PodClass{asking(in("team", "b"))}, "open"},
		"a name":                 {teams, nil, []model.PodClass{asking(in(model.LabelNodePool, "any"))}, "any"},
	} {
		catalog := model.Catalog{InstanceTypes: []model.InstanceType{{
			Name: "d8", Labels: map[string]string{"gen": "1"}, Choices: map[string][]string{"disk": {"fast"}}, Capacity: model.Resources{8000},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Labels: map[string]string{"rack": "r1"}, Price: 1, Available: true}},
		}}}
		p := &model.Problem{Pools: c.pools, Nodes: c.nodes, Classes: c.classes, Catalogs: []model.Catalog{catalog}}
		if got, _ := pruned(p, 0); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Of NodePools that offer the same, the heaviest and then the first by name stands for all.
func TestNodePoolsThatOfferTheSameAreOne(t *testing.T) {
	with := func(name string, change func(*model.Pool)) model.Pool {
		p := named(name)
		change(&p)
		return p
	}
	of := func(pods int, rs ...model.Requirement) []model.PodClass {
		c := asking(rs...)
		c.Pods = make([]model.PodRef, pods)
		return []model.PodClass{c}
	}
	x, y := named("x"), named("y")
	few := with("few", func(p *model.Pool) { p.NodeLimit, p.Nodes = 15, 10 })
	dear := with("dear", func(p *model.Pool) { limit := model.USD(7); p.CostLimit, p.Cost = &limit, model.USD(2) })
	small := with("small", func(p *model.Pool) {
		p.Limits, p.Usage = []model.Limit{{Axis: model.CPU, Value: 50_000}}, model.Resources{10_000}
	})
	without := func(name string) model.Requirement {
		return model.Requirement{Key: model.LabelNodePool, Operator: model.NotIn, Values: []string{name}}
	}
	logging := func(p *model.Pool) {
		p.Daemons = []model.Daemon{{Name: "logs", Requirements: []model.Requirements{{in(model.LabelNodePool, "y")}}}}
	}
	spreadOver := asking()
	spreadOver.Spread = []model.SpreadConstraint{{TopologyKey: model.LabelNodePool}}
	spread := asking()
	spread.Spread = []model.SpreadConstraint{{TopologyKey: "rack"}}
	for name, c := range map[string]struct {
		pools   []model.Pool
		classes []model.PodClass
		want    string
	}{
		"names":                       {[]model.Pool{y, x}, of(1), "x"},
		"labels that nobody asks for": {[]model.Pool{x, named("z", in("team", "z"))}, of(1), "x"},
		"labels that exclude others":  {[]model.Pool{named("a", in("team", "a"), in("team", "b")), x}, of(1), "a x"},
		"labels that pods ask for":    {[]model.Pool{x, named("z", in("team", "z"))}, of(1, in("team", "z")), "z"},
		"labels that pods spread by":  {[]model.Pool{named("r", in("rack", "1")), x}, []model.PodClass{spread}, "r x"},
		"minValues":                   {[]model.Pool{x, named("z", model.Requirement{Key: "team", Operator: model.Exists, MinValues: 2})}, of(1), "x z"},
		"what machines are":           {[]model.Pool{x, named("z", in("kubernetes.io/arch", "arm64"))}, of(1), "x z"},
		"weights":                     {[]model.Pool{x, with("y", func(p *model.Pool) { p.Weight = 1 })}, of(1), "y"},
		"names that pods ask for":     {[]model.Pool{x, y, named("z")}, append(of(1, in(model.LabelNodePool, "y")), asking()), "x y"},
		"a name that pods avoid":      {[]model.Pool{x, y, named("z")}, of(1, without("x")), "y"},
		"a name that a daemon has":    {[]model.Pool{with("x", logging), with("y", logging), with("z", logging)}, of(1), "x y"},
		"pods spread over NodePools":  {[]model.Pool{x, y}, []model.PodClass{spreadOver}, "x y"},
		"five pods and nodes left":    {[]model.Pool{few, x}, of(5), "few"},
		"six pods and five nodes":     {[]model.Pool{few, x}, of(6), "few x"},
		"five dollars for five pods":  {[]model.Pool{dear, x}, of(5), "dear"},
		"five dollars for six pods":   {[]model.Pool{dear, x}, of(6), "dear x"},
		"40 vCPUs for five machines":  {[]model.Pool{small, x}, of(5), "small"},
		"40 vCPUs for six machines":   {[]model.Pool{small, x}, of(6), "small x"},
	} {
		catalog := model.Catalog{InstanceTypes: []model.InstanceType{{
			Name: "d8", Capacity: model.Resources{8000, 1 << 30, 0, 110}, Overhead: model.Resources{1000},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(1), Available: true}},
		}}}
		if got, _ := pruned(&model.Problem{Pools: c.pools, Classes: c.classes, Catalogs: []model.Catalog{catalog}}, 0); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	_, k := pruned(&model.Problem{Pools: []model.Pool{x, y, named("z")}, Classes: of(1)}, 0)
	if !slices.Equal(k.alike[0], []int{1, 2}) {
		t.Errorf("x stands for %v, want y and z", k.alike[0])
	}
}

// Of NodePools with limits and as much left of them there are as many as a plan buys machines: each
// machine may be of another one.
func TestNodePoolsWithAsMuchLeftAreAsManyAsMachines(t *testing.T) {
	with := func(name string, change func(*model.Pool)) model.Pool {
		p := named(name)
		p.Limits = []model.Limit{{Axis: model.CPU, Value: 8_000}}
		if change != nil {
			change(&p)
		}
		return p
	}
	used := func(p *model.Pool) { p.Limits[0].Value, p.Usage = 18_000, model.Resources{10_000} }
	for name, c := range map[string]struct {
		third func(*model.Pool)
		want  string
	}{
		"the same":          {nil, "a b"},
		"as much left":      {used, "a b"},
		"less left":         {func(p *model.Pool) { p.Usage = model.Resources{1} }, "a b c"},
		"another axis":      {func(p *model.Pool) { p.Limits[0].Axis = model.Memory }, "a b c"},
		"a limit of nodes":  {func(p *model.Pool) { p.NodeLimit = 1 }, "a b c"},
		"a limit of cost":   {func(p *model.Pool) { p.CostLimit = new(model.Money) }, "a b c"},
		"less weight":       {func(p *model.Pool) { p.Weight = -1 }, "a b"},
		"more weight":       {func(p *model.Pool) { p.Weight = 1 }, "c a"},
		"more that returns": {func(p *model.Pool) { p.Returnable = model.Resources{1} }, "a b c"},
	} {
		catalog := model.Catalog{InstanceTypes: []model.InstanceType{{Name: "d8", Capacity: model.Resources{8000, 1 << 30, 0, 110}}}}
		class := asking()
		class.Pods = make([]model.PodRef, 2)
		pools := []model.Pool{with("a", nil), with("b", nil), with("c", c.third)}
		got, k := pruned(&model.Problem{Pools: pools, Classes: []model.PodClass{class}, Catalogs: []model.Catalog{catalog}}, 0)
		if got != c.want || len(got) == 3 && got[:1] == "a" && !slices.Equal(k.alike[0], []int{2}) {
			t.Errorf("%s: got %q and %v alike, want %q", name, got, k.alike, c.want)
		}
	}
}

// A class that no NodePool suits still learns why, from a few of them.
func TestSomeNodePoolsStayToExplain(t *testing.T) {
	p := &model.Problem{Classes: []model.PodClass{asking(in("team", "x")), asking(in("team", "t3"))}}
	for _, team := range []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "u0", "u1"} {
		p.Pools = append(p.Pools, named(team, in("team", team)))
	}
	names, _ := pruned(p, explainingPools)
	got := strings.Fields(names)
	if len(got) != explainingPools+1 || !slices.Contains(got, "t3") {
		t.Errorf("got %v, want t3 and %d others", got, explainingPools)
	}
}

// A NodePool that keeps pods out by taints is not needed where another one offers the same to
// more of them.
func TestNodePoolsThatOfferTheSameToFewerPodsAreLeftOut(t *testing.T) {
	taint := func(key string) model.Taint { return model.Taint{Key: key, Effect: model.NoSchedule} }
	tainted := func(name string, change func(*model.Pool), keys ...string) model.Pool {
		p := named(name)
		for _, key := range keys {
			p.Taints = append(p.Taints, taint(key))
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	tolerating := func(keys ...string) model.PodClass {
		c := asking()
		c.Pods = make([]model.PodRef, 2)
		for _, key := range keys {
			c.Tolerations = append(c.Tolerations, model.Toleration{Key: key, Exists: true})
		}
		return c
	}
	heavy := func(p *model.Pool) { p.Weight = 1 }
	limited := func(p *model.Pool) { p.NodeLimit = 1 }
	soft := func(p *model.Pool) {
		p.Taints = append(p.Taints, model.Taint{Key: "soft", Effect: model.PreferNoSchedule})
	}
	daemon := func(tolerations ...model.Toleration) func(p *model.Pool) {
		return func(p *model.Pool) { p.Daemons = []model.Daemon{{Name: "logs", Tolerations: tolerations}} }
	}
	everywhere := daemon(model.Toleration{Exists: true})
	byName := tolerating("a")
	byName.NodeRequirements = model.Requirements{in(model.LabelNodePool, "a")}
	both := []model.PodClass{tolerating("a"), tolerating("b")}
	for name, c := range map[string]struct {
		pools   []model.Pool
		classes []model.PodClass
		want    string
	}{
		"one for all":                    {[]model.Pool{tainted("a", nil, "a"), tainted("b", nil, "b"), named("general")}, both, "general"},
		"none for all":                   {[]model.Pool{tainted("a", nil, "a"), tainted("b", nil, "b")}, both, "a b"},
		"one for more":                   {[]model.Pool{tainted("a", nil, "a"), tainted("ab", nil, "a", "b")}, []model.PodClass{tolerating("a", "b"), tolerating("a")}, "a"},
		"a heavier one":                  {[]model.Pool{tainted("a", heavy, "a"), named("general")}, both, "a general"},
		"one that may be used up":        {[]model.Pool{tainted("a", nil, "a"), tainted("general", limited)}, both, "a general"},
		"one that pods had rather avoid": {[]model.Pool{tainted("a", nil, "a"), tainted("general", soft)}, both, "a general"},
		"one that pods name":             {[]model.Pool{tainted("a", nil, "a"), named("general")}, append(both, byName), "a general"},
		"one with more DaemonSets":       {[]model.Pool{tainted("a", daemon(), "a"), tainted("general", daemon())}, both, "a general"},
		"one with the same DaemonSets":   {[]model.Pool{tainted("a", everywhere, "a"), tainted("general", everywhere)}, both, "general"},
	} {
		catalog := model.Catalog{InstanceTypes: []model.InstanceType{{Name: "d8", Capacity: model.Resources{8000, 1 << 30, 0, 110}}}}
		got, k := pruned(&model.Problem{Pools: c.pools, Classes: c.classes, Catalogs: []model.Catalog{catalog}}, 0)
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if left := len(c.pools) - len(strings.Fields(got)); len(k.unused) != left {
			t.Errorf("%s: %d NodePools are noted, want %d", name, len(k.unused), left)
		}
	}
}
