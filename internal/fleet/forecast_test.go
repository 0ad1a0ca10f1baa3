package fleet

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Claims that ask for the same of a catalogue share what they will become, whatever their own
// labels are.
func TestClaimsShareForecasts(t *testing.T) {
	catalog := &Catalog{Axes: model.NewAxes(), InstanceTypes: []model.InstanceType{
		{Name: "d2", Labels: map[string]string{"family": "D"}, Capacity: model.Resources{2000}, Offerings: []model.Offering{
			{Zone: "z1", CapacityType: model.Spot, Price: 1, Available: true},
			{Zone: "z2", CapacityType: model.Spot, Price: 2, Available: true, Labels: map[string]string{"rack": "r2"}},
		}},
		{Name: "e2", Labels: map[string]string{"family": "E"}, Choices: map[string][]string{"disk": {"fast"}}, Capacity: model.Resources{2500},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.Spot, Price: 3, Available: true}}},
	}}
	c := &poolCatalogs{forecasts: map[string]*forecast{}, keys: map[*Catalog]map[string]bool{}}
	in := func(key string, values ...string) model.Requirement {
		return model.Requirement{Key: key, Operator: model.In, Values: values}
	}
	claim := func(tenant string, rs ...model.Requirement) *Claim {
		return &Claim{Requirements: append(model.Requirements{in("tenant", tenant)}, rs...), Labels: map[string]string{"tenant": tenant}}
	}
	stranger := claim("a", in("family", "E"))
	stranger.Labels = nil
	own := claim("a", in("rack", "r1"))
	own.Labels["rack"] = "r1"
	for _, x := range []struct {
		what  string
		claim *Claim
		price model.Money // 0 where no offering does
		kept  int
	}{
		{"the first", claim("a", in("family", "E")), 3, 1},
		{"another tenant", claim("b", in("family", "E")), 3, 1},
		{"another family", claim("b", in("family", "D")), 1, 2},
		{"a zone", claim("c", in("family", "D"), in(model.LabelZone, "z2")), 2, 3},
		{"a label that some offerings have", claim("a", in("rack", "r2")), 2, 4},
		{"a label of such a key that the claim has", own, 1, 5},
		{"a choice", claim("a", in("disk", "fast")), 3, 6},
		{"a label that neither has", stranger, 0, 6},
		{"nothing that is sold", claim("a", in("family", "F")), 0, 7},
	} {
		f := c.forecast(x.claim, catalog)
		if got := f != nil; got != (x.price > 0) || got && f.price != x.price || len(c.forecasts) != x.kept {
			t.Errorf("%s: got %+v, %d forecasts kept, want price %s and %d", x.what, f, len(c.forecasts), x.price, x.kept)
		}
	}
}
