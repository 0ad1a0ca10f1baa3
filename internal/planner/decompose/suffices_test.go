package decompose

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Parts that share a NodePool buy no more of it together than its limits admit.
func TestPlanOfPartsKeepsLimitsOfNodePools(t *testing.T) {
	limit := model.Money(2)
	for name, c := range map[string]struct {
		change func(pool *model.Pool)
		want   bool
	}{
		"no limits":     {func(*model.Pool) {}, true},
		"room for both": {func(pool *model.Pool) { pool.Limits = []model.Limit{{Axis: model.CPU, Value: 4000}} }, true},
		"room for one":  {func(pool *model.Pool) { pool.Limits = []model.Limit{{Axis: model.CPU, Value: 3999}} }, false},
		"room that is used": {func(pool *model.Pool) {
			pool.Limits = []model.Limit{{Axis: model.CPU, Value: 5000}}
			pool.Usage = model.Resources{1001}
		}, false},
		"a limit that none draws on": {func(pool *model.Pool) { pool.Limits = []model.Limit{{Axis: model.Memory, Value: -1}} }, true},
		"two nodes":                  {func(pool *model.Pool) { pool.NodeLimit = 2 }, true},
		"two nodes, one is there":    {func(pool *model.Pool) { pool.NodeLimit, pool.Nodes = 2, 1 }, false},
		"dollars for both":           {func(pool *model.Pool) { pool.CostLimit = &limit }, true},
		"dollars that are spent":     {func(pool *model.Pool) { pool.CostLimit, pool.Cost = &limit, 1 }, false},
	} {
		p := tenants()
		oneForAll(p)
		c.change(&p.Pools[0])
		node := model.NewNode{Offerings: []model.OfferingRef{{Price: 1}}}
		if got := Suffices(p, &model.Plan{NewNodes: []model.NewNode{node, node}}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
