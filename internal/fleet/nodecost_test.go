package fleet

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A node costs what its offering costs now with the disk that its machine has, also when new
// machines of its NodePool get another one, and what it cost at first where the catalogue
// does not have the offering any more.
func TestNodeCostsWhatItsMachineCosts(t *testing.T) {
	money := func(dollars float64) *model.Money {
		m := model.USD(dollars)
		return &m
	}
	for name, c := range map[string]struct {
		claim              Claim
		sold               bool
		price, disk, extra float64
		counted            float64
	}{
		"the disk of today":                {Claim{DiskPrice: money(0.5)}, true, 1.75, 0.5, 0.25, 1.75},
		"another disk":                     {Claim{DiskPrice: money(0.2)}, true, 1.45, 0.2, 0.25, 1.45},
		"an ephemeral disk":                {Claim{DiskPrice: money(0)}, true, 1.25, 0, 0.25, 1.25},
		"the machine's price has moved":    {Claim{DiskPrice: money(0.2), Paid: model.USD(9)}, true, 1.45, 0.2, 0.25, 1.45},
		"no disk recorded":                 {Claim{Paid: model.USD(9)}, true, 1.75, 0.5, 0.25, 1.75},
		"not sold any more":                {Claim{DiskPrice: money(0.2), Paid: model.USD(9), Planned: model.USD(8)}, false, 9, 0.2, 0, 9},
		"not sold, no disk recorded":       {Claim{Paid: model.USD(9)}, false, 9, 0, 0, 9},
		"not sold, only the plan is known": {Claim{Planned: model.USD(8)}, false, 8, 0, 0, 8},
		"not sold, nothing known":          {Claim{}, false, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			catalog := &Catalog{Axes: model.NewAxes()}
			if c.sold {
				catalog.InstanceTypes = []model.InstanceType{{Name: "D4", Offerings: []model.Offering{{
					Zone: "1", CapacityType: model.OnDemand, Price: model.USD(1.75), DiskPrice: model.USD(0.5), NodePrice: model.USD(0.25),
				}}}}
			}
			claim := c.claim
			claim.Name, claim.Pool, claim.ProviderID, claim.Allocatable = "a", "general", "azure:///a", Amounts{CPU: 4000, Pods: 10}
			claim.Labels = map[string]string{model.LabelInstanceType: "D4", model.LabelZone: "1", model.LabelCapacityType: "on-demand"}
			s := NewStore()
			s.Put(&Pool{Name: "general", Ready: true, NodeLimit: -1})
			s.Put(&claim)
			views, err := s.Snapshot().Views(t.Context(), answer{catalog: catalog})
			if err != nil {
				t.Fatal(err)
			}
			v := &views[0]
			if v.Price != model.USD(c.price) || v.DiskPrice != model.USD(c.disk) || v.NodePrice != model.USD(c.extra) || v.Counted != model.USD(c.counted) {
				t.Errorf("it costs %s, of that its disk %s and per node %s, and counts for %s; want %v, %v, %v and %v",
					v.Price, v.DiskPrice, v.NodePrice, v.Counted, c.price, c.disk, c.extra, c.counted)
			}
		})
	}
}
