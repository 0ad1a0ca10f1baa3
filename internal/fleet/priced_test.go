package fleet

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/model"
)

// byPool is a source with a catalogue for each NodePool.
type byPool map[string]*Catalog

func (b byPool) Catalog(_ context.Context, pool string) (*Catalog, error) { return b[pool], nil }

// Prices are told of the places of nodes and of those that are asked for, for each way in
// which they are sold, and the highest where NodePools differ; nodes of no NodePool are not
// nap's.
func TestPricedOfferingsAreThoseInUseAndAskedFor(t *testing.T) {
	sold := func(dollars float64) *Catalog {
		var types []model.InstanceType
		for _, name := range []string{"D2", "D4", "D8"} {
			var offerings []model.Offering
			for _, zone := range []string{"1", "2"} {
				offerings = append(offerings,
					model.Offering{Zone: zone, CapacityType: model.OnDemand, Price: model.USD(dollars), Available: true},
					model.Offering{Zone: zone, CapacityType: model.Spot, Price: model.USD(dollars / 2)})
			}
			types = append(types, model.InstanceType{Name: name, Offerings: offerings})
		}
		return &Catalog{Axes: model.NewAxes(), InstanceTypes: types}
	}
	s := NewStore()
	labels := func(size, zone string) map[string]string {
		return map[string]string{model.LabelInstanceType: size, model.LabelZone: zone, model.LabelCapacityType: "spot"}
	}
	s.Put(&Pool{Name: "a", Ready: true, NodeLimit: -1})
	s.Put(&Pool{Name: "b", Ready: true, NodeLimit: -1})
	s.Put(&Claim{Name: "a-1", Pool: "a", ProviderID: "1", NodeName: "n", Labels: labels("D4", "1")})
	s.Put(&Node{Name: "n", ProviderID: "1", Registered: true, Labels: labels("D4", "1")})
	s.Put(&Node{Name: "system", Labels: labels("D2", "1")})
	got, err := s.Snapshot().Priced(t.Context(), byPool{"a": sold(1), "b": sold(3)}, []Place{{"D8", "2"}, {"D99", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []PricedOffering{
		{Place{"D4", "1"}, model.OnDemand, model.USD(3)}, {Place{"D4", "1"}, model.Spot, model.USD(1.5)},
		{Place{"D8", "2"}, model.OnDemand, model.USD(3)}, {Place{"D8", "2"}, model.Spot, model.USD(1.5)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
