package compiled

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// pricing is a problem of machines of many sizes, which have the extended resources. One class
// moves, and one waits which asks for all of these.
func pricing(sizes int, extended []string, had int64) *model.DisruptionProblem {
	axes := model.NewAxes(extended...)
	var types []model.InstanceType
	for i := range sizes {
		capacity := model.Resources{int64(1000 * (1 + i%64)), int64(1+i*7%61) << 30, 1 << 36, 30}
		for r := range extended {
			capacity = append(capacity, had*int64(1+(i*(r+3))%97))
		}
		types = append(types, model.InstanceType{Name: fmt.Sprint("d", i), Capacity: capacity, Offerings: []model.Offering{
			{Zone: "z1", Price: model.Money(1000 + i*i%977), Available: true},
		}})
	}
	waits := model.Resources{100, 1 << 30, 0, 1}
	for r := range extended {
		waits = append(waits, int64(1+r))
	}
	return &model.DisruptionProblem{
		Problem: &model.Problem{
			Axes: axes, Catalogs: []model.Catalog{{InstanceTypes: types}}, Pools: []model.Pool{{Name: "all", NodeLimit: -1}},
			Classes: []model.PodClass{{Pods: make([]model.PodRef, 5), Requests: waits}},
		},
		Movable: []model.MovableClass{{PodClass: model.PodClass{Pods: make([]model.PodRef, 7), Requests: model.Resources{500, 2 << 30, 0, 1}}}},
	}
}

func resources(n int) []string {
	var out []string
	for r := range n {
		out = append(out, fmt.Sprintf("example.com/r%02d", r))
	}
	return out
}

// What pods ask for and no machine has bounds no price: it has none, and the search for the others
// is as without it.
func TestPricesIgnoreWhatNoMachineHas(t *testing.T) {
	plain, absurd := Compile(pricing(200, nil, 0), nil), Compile(pricing(200, resources(32), 0), nil)
	if cpu := absurd.demand()[0]; cpu != 7*500 {
		t.Errorf("pods are priced that no machine holds: the demand for cpu is %g", cpu)
	}
	absurd.Classes[0].Levels = plain.Classes[0].Levels // also where such pods count
	without, with := plain.newPriceSearch(), absurd.newPriceSearch()
	without.run()
	with.run()
	if len(with.dims) != len(without.dims) || with.multiplied != without.multiplied {
		t.Errorf("%d dimensions take %d multiplications, without such resources %d and %d",
			len(with.dims), with.multiplied, len(without.dims), without.multiplied)
	}
	if value := absurd.Classes[1].Value; value <= 0 || value > 1e9 {
		t.Errorf("a pod that moves is worth %g", value)
	}
}

// However many resources there are to price, the search ends.
func TestPricesOfManyResourcesAreFoundSoon(t *testing.T) {
	for _, n := range []int{0, 60} {
		p := Compile(pricing(600, resources(n), 100), nil)
		s := p.newPriceSearch()
		s.run()
		if most := mostPricing + len(s.nets); s.multiplied > most {
			t.Errorf("%d resources take %d multiplications, wanted are %d at most", n, s.multiplied, most)
		}
	}
}
