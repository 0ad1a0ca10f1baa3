package nodeclaims

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestAnnotationNamesPriceAndNextBest(t *testing.T) {
	offering := func(zone string, how model.CapacityType) model.Offering {
		return model.Offering{Zone: zone, CapacityType: how}
	}
	p := &model.Problem{
		Axes:  model.NewAxes(),
		Pools: []model.Pool{{Name: "general"}},
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
			{Name: "Standard_D8as_v5", Offerings: []model.Offering{offering("eastus-1", model.Spot), offering("eastus-2", model.Spot)}},
			{Name: "Standard_D8s_v5", Offerings: []model.Offering{offering("eastus-1", model.Spot)}},
		}}},
	}
	node := &model.NewNode{
		Requests: model.Resources{7000, 7 << 30, 0, 7},
		Pods:     []model.ClassPods{{Pods: []int{0, 1, 2}}, {Pods: []int{0, 1, 2, 3}}},
	}
	offerings := []model.OfferingRef{{InstanceType: 0, Offering: 0, Price: 99_000},
		{InstanceType: 0, Offering: 1, Price: 99_000}, {InstanceType: 1, Offering: 0, Price: 105_000}}
	want := "Standard_D8as_v5 eastus-1 spot at $0.099/h for 7 pods (cpu 7, memory 7Gi): the cheapest of 3 ways; next " +
		"Standard_D8s_v5 eastus-1 spot at $0.105/h"
	if got := explain(p, node, offerings); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = "Standard_D8as_v5 eastus-1 spot at $0.099/h for 7 pods (cpu 7, memory 7Gi): no other size would do"
	if got := explain(p, node, offerings[:2]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.Catalogs[0].InstanceTypes[0].Offerings[0].Zone = model.NoZone
	want = "Standard_D8as_v5 regional spot at $0.099/h for 7 pods (cpu 7, memory 7Gi): no other size would do"
	if got := explain(p, node, offerings[:1]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
