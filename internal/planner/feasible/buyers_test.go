package feasible

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The pools that are left buy the same types as all of them.
func TestDistinctBuyersBuyTheSame(t *testing.T) {
	keys := []string{model.LabelInstanceType, model.LabelZone, model.LabelCapacityType, "arch", "cpus", "team"}
	values := []string{"a", "b", "2", "10"}
	rapid.Check(t, func(t *rapid.T) {
		requirement := rapid.Custom(func(t *rapid.T) model.Requirement {
			return model.Requirement{
				Key:      rapid.SampledFrom(keys).Draw(t, "key"),
				Operator: rapid.SampledFrom(model.Operators()).Draw(t, "operator"),
				Values:   rapid.SliceOfN(rapid.SampledFrom(values), 0, 2).Draw(t, "values"),
			}
		})
		var pools []*model.Pool
		for range rapid.IntRange(0, 6).Draw(t, "pools") {
			pools = append(pools, &model.Pool{Requirements: rapid.SliceOfN(requirement, 0, 3).Draw(t, "requirements")})
		}
		src := &model.Catalog{}
		for range rapid.IntRange(1, 4).Draw(t, "types") {
			kind := model.InstanceType{Name: rapid.SampledFrom(values).Draw(t, "name"), Labels: map[string]string{}}
			for _, key := range keys[3:5] {
				if rapid.Bool().Draw(t, "has") {
					kind.Labels[key] = rapid.SampledFrom(values).Draw(t, "value")
				}
			}
			if rapid.Bool().Draw(t, "open") {
				kind.Choices = map[string][]string{"arch": values}
			}
			src.InstanceTypes = append(src.InstanceTypes, kind)
		}
		some, _ := distinctBuyers(src, pools)
		for i := range src.InstanceTypes {
			buys := func(p *model.Pool) bool { return mayBuy(p, &src.InstanceTypes[i]) }
			if slices.ContainsFunc(pools, buys) != slices.ContainsFunc(some, buys) {
				t.Fatalf("type %+v: bought by all pools %v, by %d of %d %v", src.InstanceTypes[i],
					slices.ContainsFunc(pools, buys), len(some), len(pools), slices.ContainsFunc(some, buys))
			}
		}
	})
}

// Problems that share catalogues are compiled as if each had its own, whatever the others
// have read of them.
func TestSharedCataloguesAreReadAlike(t *testing.T) {
	machine := func(name string, labels map[string]string) model.InstanceType {
		return model.InstanceType{
			Name: name, Labels: labels, Capacity: model.Resources{model.CPU: 4000, model.Memory: 16 << 30, model.Pods: 30},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: 100, Available: true}},
		}
	}
	catalogs := []model.Catalog{{InstanceTypes: []model.InstanceType{
		machine("a", map[string]string{"arch": "amd64"}), machine("b", map[string]string{"arch": "arm64", "gpu": "yes"}), machine("", nil),
	}}}
	problem := func(pool model.Pool, asked ...model.Requirement) *model.Problem {
		return &model.Problem{Axes: model.NewAxes(), Catalogs: catalogs, Pools: []model.Pool{pool}, Classes: []model.PodClass{asking(asked...)}}
	}
	problems := []*model.Problem{
		problem(named("amd", in("arch", "amd64"))),
		problem(named("arm", in("arch", "arm64"))),
		problem(named("amd-again", in("arch", "amd64"))),
		problem(named("any"), in("gpu", "yes")),
		problem(named("teams", in("arch", "amd64"), model.Requirement{Key: "team", Operator: model.Exists}), in("team", "blue")),
		problem(named("team", in("arch", "amd64"), in("team", "blue")), in("team", "blue")),
		{Axes: model.NewAxes(), Catalogs: slices.Clone(catalogs), Pools: []model.Pool{named("other")}, Classes: []model.PodClass{asking()}},
	}
	shared := NewCatalogs(catalogs)
	for range 2 {
		for _, p := range problems {
			want, got := New(p, nil), New(p, shared)
			if len(want.Options) == 0 || !reflect.DeepEqual(got.Options, want.Options) || !reflect.DeepEqual(got.Labels, want.Labels) {
				t.Errorf("NodePool %s: %d options by shared catalogues, %d by its own; or their labels differ", p.Pools[0].Name,
					len(got.Options), len(want.Options))
			}
			if !slices.Equal(got.Rejected, want.Rejected) || len(want.Rejected) == 0 {
				t.Errorf("NodePool %s: rejected is %v by shared catalogues, %v by its own", p.Pools[0].Name, got.Rejected, want.Rejected)
			}
		}
	}
	if len(shared.read) != 4 {
		t.Errorf("catalogues were read %d times for six problems, of which two and two read the same", len(shared.read))
	}
}
