package poollint

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The cheapest machines that are enough may be more than a NodePool may have.
func TestCheapestMachinesKeepToTheLimit(t *testing.T) {
	size := func(name string, cpu, memory int64, price float64) model.InstanceType {
		return model.InstanceType{
			Name: name, Capacity: model.Resources{cpu * 1000, memory << 30}, Offerings: []model.Offering{{Price: model.USD(price), Available: true}},
		}
	}
	c := &fleet.Catalog{InstanceTypes: []model.InstanceType{size("small", 8, 64, 0.5), size("large", 32, 256, 1)}}
	least := model.Resources{24_000, 192 << 30}
	for limit, want := range map[int64]string{24_000: "small", 31_999: "small", 32_000: "large", 23_999: ""} {
		if got, _, _, _ := CheapestFor(nil, c, least, limit); got != want {
			t.Errorf("with %d milli-vCPUs at most: got %q, want %q", limit, got, want)
		}
	}
}
