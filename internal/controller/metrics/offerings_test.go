package metrics

import (
	"context"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestOfferingPricesFollowLastPlanThatBuys(t *testing.T) {
	reg := prometheus.NewRegistry()
	var asked []fleet.Place
	o, err := NewOfferings(reg, func(_ context.Context, further []fleet.Place) ([]fleet.PricedOffering, error) {
		asked = further
		var out []fleet.PricedOffering
		for _, p := range further {
			out = append(out, fleet.PricedOffering{Place: p, CapacityType: model.Spot, Price: model.USD(0.25)})
		}
		return out, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &model.Problem{
		Pools: []model.Pool{{Name: "general"}},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{Name: "Standard_D4s_v5", Offerings: []model.Offering{
			{Zone: "eastus-1", CapacityType: model.OnDemand}, {Zone: "eastus-2", CapacityType: model.Spot},
		}}}}},
	}
	o.Planned(p, &model.Plan{NewNodes: []model.NewNode{{Offerings: []model.OfferingRef{{Offering: 1}}}}})
	o.Planned(p, &model.Plan{})
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetGauge().GetValue() != 0.25 {
		t.Fatalf("gathered %v, %v", families, err)
	}
	if want := []fleet.Place{{InstanceType: "Standard_D4s_v5", Zone: "eastus-2"}}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}
