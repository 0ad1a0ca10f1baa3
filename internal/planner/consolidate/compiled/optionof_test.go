package compiled

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// What a plan buys is found with the labels that its pods need, where the NodePool leaves them
// to its machines.
func TestOptionOfNewNodeHasItsLabels(t *testing.T) {
	team := func(values ...string) model.Requirements {
		return model.Requirements{{Key: "team", Operator: model.In, Values: values}}
	}
	f := &model.DisruptionProblem{Problem: &model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
			{Name: "d2", Capacity: model.Resources{2000, 8 << 30, 0, 10}, Offerings: []model.Offering{{Zone: "z1", Price: 2, Available: true}}},
			{Name: "d4", Capacity: model.Resources{4000, 16 << 30, 0, 10}, Offerings: []model.Offering{
				{Zone: "z1", Price: 4, Available: true}, {Zone: "z2", Price: 4, Available: true},
			}},
		}}},
		Pools: []model.Pool{{Name: "none"}, {Name: "all", NodeLimit: -1, Requirements: model.Requirements{{Key: "team", Operator: model.Exists}}}},
	}}
	for _, of := range []string{"a", "b"} {
		f.Movable = append(f.Movable, model.MovableClass{PodClass: model.PodClass{
			Pods: make([]model.PodRef, 1), PodShape: model.PodShape{Namespace: of},
			Requests: model.Resources{1000, 1 << 30}, PodRules: model.PodRules{NodeRequirements: team(of)},
		}})
	}
	p := Compile(f, nil)
	key := p.Space.Labels.KeyIndex("team")
	for _, of := range []string{"a", "b"} {
		node := &model.NewNode{Pool: 1, Offerings: []model.OfferingRef{{InstanceType: 1, Offering: 1}}, Requirements: team(of)}
		o := p.Space.OptionOf(node, nil)
		if o < 0 {
			t.Fatalf("team %s has no option", of)
		}
		option := p.Space.Options[o]
		if name, _ := p.Space.Labels.ValueName(key, p.Space.Labels.OptionValue(key, o)); name != of || option.Type != 1 || option.Offering != 1 {
			t.Errorf("team %s: got type %d, offering %d of team %q", of, option.Type, option.Offering, name)
		}
		for at := range p.Options {
			permitted := p.Classes[map[string]int{"a": 0, "b": 1}[of]].LevelFor(p.Options[at].Option) >= 0
			if got := p.Permitted.ByClass[map[string]int{"a": 0, "b": 1}[of]].Has(at); got != permitted {
				t.Errorf("team %s, option %d: listed as permitted %v, is %v", of, at, got, permitted)
			}
		}
	}
	if o := p.Space.OptionOf(&model.NewNode{Pool: 1, Offerings: []model.OfferingRef{{}}, Requirements: team("c")}, nil); o >= 0 {
		t.Errorf("a team without pods has option %d", o)
	}
	if o := p.Space.OptionOf(&model.NewNode{Pool: 2, Offerings: []model.OfferingRef{{}}}, nil); o >= 0 {
		t.Errorf("another NodePool has option %d", o)
	}
}
