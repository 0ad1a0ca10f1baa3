package instance

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// varied has two NodePools, of which each asks for two sizes and the lighter one may buy one alone.
func varied() *Instance {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: make([]model.Catalog, 1), Classes: make([]model.PodClass, 1)}
	for _, size := range []string{"d2", "d4"} {
		p.Catalogs[0].InstanceTypes = append(p.Catalogs[0].InstanceTypes, model.InstanceType{
			Name: size, Capacity: model.Resources{2000, 8 << 30, 0, 110},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: 1, Available: true}},
		})
	}
	two := model.Requirement{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: 2}
	one := model.Requirement{Key: model.LabelInstanceType, Operator: model.In, Values: []string{"d4"}}
	p.Classes[0].Pods = make([]model.PodRef, 1)
	p.Pools = []model.Pool{
		{Name: "heavy", NodeLimit: -1, Weight: 1, Requirements: model.Requirements{two}},
		{Name: "light", NodeLimit: -1, Requirements: model.Requirements{two, one}},
	}
	return New(feasible.New(p, nil))
}

// A NodePool counts values of its own options alone, however many others there are.
func TestMinValuesCountOptionsOfThePool(t *testing.T) {
	in := varied()
	all := bitset.Full(len(in.Space.Options))
	for pool, met := range []bool{true, false} {
		if got := in.MinValues.Met(pool, all, make([]int64, in.Space.Dims.Count)); got != met {
			t.Errorf("NodePool %d: met is %v, want %v", pool, got, met)
		}
	}
}

// Of many tiers those are looked at that pods come to.
func TestFilledLooksAtOneTier(t *testing.T) {
	in := varied()
	light, static := in.Space.Pools[1], in.Classes[0].Levels[0].Static
	for tier, want := range []bool{true, false} {
		if got := in.MinValues.Filled(static, tier).Has(light.First); got != want {
			t.Errorf("tier %d: the light NodePool may be filled: %v, want %v", tier, got, want)
		}
	}
}
