package poollint

import (
	"fmt"
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
			o := model.Offering{Zone: "r-1", CapacityType: c, Quotas: []model.QuotaUse{{Quota: "family" + name}, {Quota: "cores"}},
				Labels: map[string]string{model.LabelCapacityType: string(c), model.LabelZone: "r-1"}}
			if c == model.Spot {
				o.Quotas = []model.QuotaUse{{Quota: "lowPriorityCores"}}
			}
			t.Offerings = append(t.Offerings, o)
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
	return Pool{Pool: p, Catalog: market(), Lacking: Lacking{
		Excluded: func(size string) string {
			if size == "small" {
				return "AKS takes no size with fewer than 2 vCPUs"
			}
			return ""
		},
		Unknown: func(size string) bool { return size == "untabled" },
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
	spot, onDemand := in(model.LabelCapacityType, "spot"), in(model.LabelCapacityType, "on-demand")
	enough := map[string]int64{"cores": 100}
	static, tiny := lintPool("p", -1), lintPool("p", 1)
	static.Static, static.Replicas = true, 3
	tiny.Catalog.Axes = model.NewAxes()
	for i := range tiny.Catalog.InstanceTypes {
		tiny.Catalog.InstanceTypes[i].Capacity = model.Resources{2000 * int64(i+1)}
	}
	pinned := lintPool("p", 10)
	pinned.NeverExpires, pinned.Image = true, "202311.07.0"
	heavy, tainted, labelled := lintPool("q", 10), lintPool("q", 10), lintPool("q", 10)
	heavy.Weight = 5
	tainted.Taints = []model.Taint{{Key: "team", Value: "x", Effect: "NoSchedule"}}
	labelled.Labels = map[string]string{"team": "x"}
	misspelt, owned := lintPool("p", 10), lintPool("p", 10)
	misspelt.Limits = append(misspelt.Limits, fleet.Amount{Name: "cpus", Value: 5})
	owned.Limits = append(owned.Limits, fleet.Amount{Name: "example.com/fpga", Value: 5}, fleet.Amount{Name: "pods", Value: 50})
	broken, budgeted := lintPool("q", 10), lintPool("p", 10)
	broken.Invalid = "spec.limits[cpu]: got -1, must not be negative"
	budgeted.Disruption.Unreadable = []string{`spec.disruption.budgets[0].schedule "61 0 * * *": end of range (61) above maximum (59): 61`}
	for name, tt := range map[string]struct {
		pools  []Pool
		quotas map[string]int64
		want   []Code
	}{
		"nothing is wrong":            {[]Pool{lintPool("p", 10)}, enough, nil},
		"no zone of that name":        {[]Pool{lintPool("p", 10, in(model.LabelZone, "1"))}, nil, []Code{NothingToBuy}},
		"a size is excluded":          {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "A", "B", "small"))}, nil, []Code{SizeCannotBeBought}},
		"no size of that name":        {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "A", "B", "C"))}, nil, []Code{SizeCannotBeBought}},
		"a size that the table lacks": {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "B", "untabled"))}, nil, nil},
		"sizes that the table lacks":  {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "untabled"))}, nil, nil},
		"static":                      {[]Pool{static}, enough, nil},
		"below the least size":        {[]Pool{tiny}, nil, []Code{LimitBelowMachine}},
		"one size":                    {[]Pool{lintPool("p", 10, in(model.LabelInstanceType, "B"))}, nil, []Code{OneSize}},
		"spot alone":                  {[]Pool{lintPool("p", 10, spot)}, nil, []Code{OneSize, SpotWithoutFallback}},
		"spot with fallback":          {[]Pool{lintPool("p", 10, spot), heavy}, nil, []Code{OneSize}},
		"limit of no resource":        {[]Pool{misspelt}, enough, []Code{UnknownLimit}},
		"limits of devices and pods":  {[]Pool{owned}, enough, nil},
		"no limit":                    {[]Pool{lintPool("p", -1)}, enough, []Code{NoLimit}},
		"limit above the quota":       {[]Pool{lintPool("p", 101, onDemand)}, enough, []Code{LimitAboveQuota}},
		"quota is not known":          {[]Pool{lintPool("p", 101)}, nil, nil},
		"limit above the quota of a family": {[]Pool{lintPool("p", 60, onDemand, in(model.LabelInstanceType, "B"))},
			map[string]int64{"cores": 100, "familyb": 50}, []Code{OneSize, LimitAboveQuota}},
		"spot has a quota of its own":       {[]Pool{lintPool("p", 101)}, map[string]int64{"cores": 100, "lowPriorityCores": 50}, nil},
		"overlap":                           {[]Pool{lintPool("p", 10), lintPool("q", 10)}, nil, []Code{Overlap, Overlap}},
		"another weight":                    {[]Pool{lintPool("p", 10), heavy}, nil, nil},
		"a taint tells apart":               {[]Pool{lintPool("p", 10), tainted}, nil, nil},
		"a label tells apart":               {[]Pool{lintPool("p", 10), labelled}, nil, nil},
		"pinned for ever":                   {[]Pool{pinned}, nil, []Code{PinnedForEver}},
		"no overlap with what buys nothing": {[]Pool{lintPool("p", 10), broken}, nil, []Code{NothingToBuy}},
		"budget that cannot be read":        {[]Pool{budgeted}, enough, []Code{UnreadableBudget}},
		"below any machine":                 {[]Pool{dollars(0.14)}, nil, []Code{LimitBelowMachine}},
		"one machine":                       {[]Pool{dollars(0.15)}, nil, nil},
	} {
		var got []Code
		for _, f := range Lint(tt.pools, Subscription{Limits: tt.quotas}) {
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

// TestManagedGPUsNeedTheirFeature: a NodePool is told of the preview feature where it can buy
// NVIDIA's GPUs, its class has them managed, and the feature is known not to be registered.
func TestManagedGPUsNeedTheirFeature(t *testing.T) {
	pool := func(manufacturer string, managed bool) Pool {
		p := lintPool("p", 10)
		p.Catalog.InstanceTypes[1].Labels[labelGPUManufacturer] = manufacturer
		p.ManagedGPU = managed
		return p
	}
	away := pool("nvidia", true)
	away.Requirements = []model.Requirement{in(model.LabelInstanceType, "A")}
	for name, tt := range map[string]struct {
		pool Pool
		none bool
		want bool
	}{
		"not registered":             {pool("nvidia", true), true, true},
		"registered, or not known":   {pool("nvidia", true), false, false},
		"the class manages nothing":  {pool("nvidia", false), true, false},
		"GPUs of another make":       {pool("amd", true), true, false},
		"the NodePool buys no GPUs":  {away, true, false},
		"no size of the region does": {lintPool("p", 10), true, false},
	} {
		found := slices.ContainsFunc(Lint([]Pool{tt.pool}, Subscription{NoManagedGPU: tt.none}),
			func(f Finding) bool { return f.Code == ManagedGPUNotRegistered })
		if found != tt.want {
			t.Errorf("%s: found %v, want %v", name, found, tt.want)
		}
	}
}

// TestRoomIsWhatQuotasDecideTogether: families add up below the limit of the region, spot
// comes on top, and what has no limit that is known leaves the region's.
func TestRoomIsWhatQuotasDecideTogether(t *testing.T) {
	spot, onDemand := in(model.LabelCapacityType, "spot"), in(model.LabelCapacityType, "on-demand")
	for name, tt := range map[string]struct {
		limits map[string]int64
		rs     []model.Requirement
		vcpus  int64
		of     []string
	}{
		"nothing is known":      {nil, nil, -1, nil},
		"families":              {map[string]int64{"familyA": 10, "familyB": 20, "cores": 100}, []model.Requirement{onDemand}, 30, []string{"familyA", "familyB"}},
		"the region":            {map[string]int64{"familyA": 10, "familyB": 20, "cores": 25}, []model.Requirement{onDemand}, 25, []string{"cores"}},
		"one family is open":    {map[string]int64{"familyA": 10, "cores": 25}, []model.Requirement{onDemand}, 25, []string{"cores"}},
		"a family, no region":   {map[string]int64{"familyA": 10}, []model.Requirement{onDemand}, -1, nil},
		"spot":                  {map[string]int64{"lowPriorityCores": 7, "cores": 0}, []model.Requirement{spot}, 7, []string{"lowPriorityCores"}},
		"both":                  {map[string]int64{"lowPriorityCores": 7, "cores": 25, "familyA": 50, "familyB": 1}, nil, 32, []string{"cores", "lowPriorityCores"}},
		"spot without a limit":  {map[string]int64{"cores": 25}, nil, -1, nil},
		"nothing can be bought": {map[string]int64{"cores": 25}, []model.Requirement{in(model.LabelZone, "1")}, -1, nil},
	} {
		p := lintPool("p", 1, tt.rs...)
		if vcpus, of := Room(p.Pool, p.Catalog, tt.limits); vcpus != tt.vcpus || !slices.Equal(of, tt.of) {
			t.Errorf("%s: %d of %v, want %d of %v", name, vcpus, of, tt.vcpus, tt.of)
		}
	}
}

// Of many others a finding names the first.
func TestOverlapNamesAFewNodePools(t *testing.T) {
	for n, want := range map[int]string{
		6: "buys the same machines for the same pods as NodePool p1, p2, p3, p4, p5, at equal weight",
		9: "buys the same machines for the same pods as NodePool p1, p2, p3, p4, p5 and 3 more, at equal weight",
	} {
		var pools []Pool
		for i := range n {
			pools = append(pools, lintPool(fmt.Sprint("p", i), 10))
		}
		var first *Finding
		findings := Lint(pools, Subscription{Limits: map[string]int64{"cores": 100}})
		for i := range findings {
			if findings[i].Code == Overlap && first == nil {
				first = &findings[i]
			}
		}
		if first == nil || first.Message != want {
			t.Errorf("%d NodePools: %+v, want %s", n, first, want)
		}
	}
}
