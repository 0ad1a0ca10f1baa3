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

// A part is stated with what others have left, and the whole stays as it is.
func TestPartHasWhatOthersLeave(t *testing.T) {
	p := tenants()
	oneForAll(p)
	p.Quotas = []model.Quota{{Name: "family", Left: 5}}
	for o := range p.Catalogs[0].InstanceTypes[0].Offerings {
		p.Catalogs[0].InstanceTypes[0].Offerings[o].Quotas = []model.QuotaUse{{Quota: "family", Amount: 2}}
	}
	parts, supply := Split(p, 0), NewSupply(p)
	bought := &model.Plan{NewNodes: []model.NewNode{{Offerings: []model.OfferingRef{{Price: 1}}}}}
	for machines, want := range []bool{true, true, false} {
		if got := supply.Take(&parts[0], bought); got != want {
			t.Fatalf("beside %d machines of two each a quota of five has room for one more: got %v, want %v", machines, got, want)
		}
	}
	left := supply.Left(&parts[1]).Problem
	if pool := &left.Pools[0]; pool.Nodes != 2 || pool.Cost != 2 || pool.Usage.Get(model.CPU) != 4000 || left.Quotas[0].Left != 1 {
		t.Errorf("left are %+v and quotas %v", pool, left.Quotas)
	}
	if own := parts[1].Problem; own.Pools[0].Nodes != 0 || own.Quotas[0].Left != 5 || supply.Reserved() {
		t.Error("the part itself was changed, or something is reserved")
	}
}
