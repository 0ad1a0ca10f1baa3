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

// kept are the names of the pools that prune leaves.
func kept(p *model.Problem) string {
	order := make([]int, len(p.Pools))
	for i := range order {
		order[i] = i
	}
	var names []string
	for _, i := range prune(p, order) {
		names = append(names, p.Pools[i].Name)
	}
	return strings.Join(names, " ")
}

func TestNodePoolsThatNoClassCanUseAreLeftOut(t *testing.T) {
	tainted := named("tainted")
	tainted.Taints = []model.Taint{{Key: "team", Value: "a", Effect: model.NoSchedule}}
	soft := named("soft")
	soft.Taints = []model.Taint{{Key: "team", Value: "a", Effect: model.PreferNoSchedule}}
	limited := named("limited")
	limited.NodeLimit = 5
	tolerant := model.PodClass{PodRules: model.PodRules{Tolerations: []model.Toleration{{Key: "team", Exists: true}}}}
	teams := []model.Pool{named("a", in("team", "a")), named("b", in("team", "b")), named("bc", in("team", "b", "c")), named("any")}
	notB := asking(model.Requirement{Key: "team", Operator: model.NotIn, Values: []string{"b"}})
	either := model.PodClass{PodRules: model.PodRules{NodeAlternatives: []model.Requirements{{in("team", "x")}, {in("team", "b")}}}}
	for name, c := range map[string]struct {
		pools   []model.Pool
		nodes   []model.Node
		classes []model.PodClass
		want    string
	}{
		"taints":                        {[]model.Pool{tainted, soft}, nil, []model.PodClass{asking()}, "soft"},
		"tolerated taints":              {[]model.Pool{tainted, soft}, nil, []model.PodClass{tolerant}, "tainted soft"},
		"a label":                       {teams, nil, []model.PodClass{asking(in("team", "b"))}, "b bc any"},
		"the absence of a value":        {teams, nil, []model.PodClass{notB}, "a bc any"},
		"alternatives":                  {teams, nil, []model.PodClass{either}, "b bc any"},
		"two classes":                   {teams, nil, []model.PodClass{asking(in("team", "a")), asking(in("team", "c"))}, "a bc any"},
		"nodes":                         {teams, []model.Node{{Pool: "b"}}, []model.PodClass{asking(in("team", "a"))}, "a b any"},
		"pools that differ in the name": {[]model.Pool{named("x"), named("y"), named("z", in("team", "z")), named("w")}, nil, []model.PodClass{asking()}, "x z"},
		"a limit":                       {[]model.Pool{named("x"), limited, named("y")}, nil, []model.PodClass{asking()}, "x limited"},
		"a pool's name":                 {[]model.Pool{named("x"), named("y")}, nil, []model.PodClass{asking(), asking(in(model.LabelNodePool, "y"))}, "x y"},
	} {
		if got := kept(&model.Problem{Pools: c.pools, Nodes: c.nodes, Classes: c.classes}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A class that no NodePool suits still learns why, from a few of them.
func TestSomeNodePoolsStayToExplain(t *testing.T) {
	p := &model.Problem{Classes: []model.PodClass{asking(in("team", "x")), asking(in("team", "t3"))}}
	for _, team := range []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "u0", "u1"} {
		p.Pools = append(p.Pools, named(team, in("team", team)))
	}
	got := strings.Fields(kept(p))
	if len(got) != explainingPools+1 || !slices.Contains(got, "t3") {
		t.Errorf("got %v, want t3 and %d others", got, explainingPools)
	}
}
