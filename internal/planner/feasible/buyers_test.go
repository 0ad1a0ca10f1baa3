package feasible

import (
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
		some := distinctBuyers(src, pools)
		for i := range src.InstanceTypes {
			buys := func(p *model.Pool) bool { return mayBuy(p, &src.InstanceTypes[i]) }
			if slices.ContainsFunc(pools, buys) != slices.ContainsFunc(some, buys) {
				t.Fatalf("type %+v: bought by all pools %v, by %d of %d %v", src.InstanceTypes[i],
					slices.ContainsFunc(pools, buys), len(some), len(pools), slices.ContainsFunc(some, buys))
			}
		}
	})
}
