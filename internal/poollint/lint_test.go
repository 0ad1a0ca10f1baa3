package poollint

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// market has a size with spot and on-demand, and one with on-demand alone.
func market() *fleet.Catalog {
	size := func(name string, capacity ...model.CapacityType) model.InstanceType {
		t := model.InstanceType{Name: name, Labels: map[string]string{model.LabelInstanceType: name}}
		for _, c := range capacity {
			t.Offerings = append(t.Offerings, model.Offering{Zone: "r-1", CapacityType: c,
				Labels: map[string]string{model.LabelCapacityType: string(c), model.LabelZone: "r-1"}})
		}
		return t
	}
	return &fleet.Catalog{InstanceTypes: []model.InstanceType{size("A", model.Spot, model.OnDemand), size("B", model.OnDemand)}}
}

func lintPool(name string, limit int64, rs ...model.Requirement) Pool {
	p := &fleet.Pool{Name: name, NodeLimit: -1, Requirements: rs}
	if limit >= 0 {
		p.Limits = []fleet.Amount{{Name: "cpu", Value: limit * 1000}}
	}
	return Pool{Pool: p, Catalog: market(), Excluded: func(size string) string {
		if size == "small" {
			return "AKS takes no size with fewer than 2 vCPUs"
		}
		return ""
	}}
}

// dollars is a NodePool that may cost so much per hour, whose machines cost $0.10/h and
// $0.05/h beside.
func dollars(limit float64) Pool {
	p := lintPool("p", -1)
	most := model.USD(limit)
	p.CostLimit, p.NodeCost = &most, model.USD(0.05)
	for i := range p.Catalog.InstanceTypes {
		for j := range p.Catalog.InstanceTypes[i].Offerings {
			p.Catalog.InstanceTypes[i].Offerings[j].Price = model.USD(0.10)
		}
	}
	return p
}

func in(key string, values ...string) model.Requirement {
	return model.Requirement{Key: key, Operator: model.In, Values: values}
}

func TestLintFindsWhatObjectsDoNotTell(t *testing.T) {
	spot := in(model.LabelCapacityType, "spot")
	pinned := lintPool("p", 10)
	pinned.NeverExpires, pinned.Image = true, "202311.07.0"
	heavy, tainted, labelled := lintPool("q", 10), lintPool("q", 10), lintPool("q", 10)
	heavy.Weight = 5
	tainted.Taints = []model.Taint{{Key: "team", Value: "x", Effect: "NoSchedule"}}
	labelled.Labels = map[string]string{"team": "x"}
	for name, tt := range map[string]struct {
		pools []Pool
		quota int64
		want  []Code
	}{
		"nothing is wrong":      {[]Pool{lintPool("p", 10)}, 100, nil},
		"no zone of that name":  {[]Pool{lintPool("p", 10, in(model.LabelZone, "1"))}, -1, []Code{NothingToBuy}},
		"a size is excluded":    {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "A", "B", "small"))}, -1, []Code{SizeCannotBeBought}},
		"one size":              {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "B"))}, -1, []Code{OneSize}},
		"spot alone":            {[]Pool{lintPool("p", 10, spot)}, -1, []Code{OneSize, SpotWithoutFallback}},
		"spot with fallback":    {[]Pool{lintPool("p", 10, spot), heavy}, -1, []Code{OneSize}},
		"no limit":              {[]Pool{lintPool("p", -1)}, 100, []Code{NoLimit}},
		"limit above the quota": {[]Pool{lintPool("p", 101)}, 100, []Code{LimitAboveQuota}},
		"quota is not known":    {[]Pool{lintPool("p", 101)}, -1, nil},
		"below any machine":     {[]Pool{dollars(0.14)}, -1, []Code{LimitBelowMachine}},
		"one machine":           {[]Pool{dollars(0.15)}, -1, nil},
		"overlap":               {[]Pool{lintPool("p", 10), lintPool("q", 10)}, -1, []Code{Overlap, Overlap}},
		"another weight":        {[]Pool{lintPool("p", 10), heavy}, -1, nil},
		"a taint tells apart":   {[]Pool{lintPool("p", 10), tainted}, -1, nil},
		"a label tells apart":   {[]Pool{lintPool("p", 10), labelled}, -1, nil},
		"pinned for ever":       {[]Pool{pinned}, -1, []Code{PinnedForEver}},
	} {
		var got []Code
		for _, f := range Lint(tt.pools, tt.quota) {
			got = append(got, f.Code)
			if f.Message == "" || f.Fix == "" || f.NodePool == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
