package launch

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// shop sells sizes at fixed prices.
type shop struct {
	onDemand, spot map[string]float64
	blocked        string // zone
}

func (shop) NodeCost(string, model.CapacityType) model.Money { return 0 }

func (s shop) Price(size string, capacityType model.CapacityType) (model.Money, bool) {
	prices := s.onDemand
	if capacityType == model.Spot {
		prices = s.spot
	}
	p, ok := prices[size]
	return model.USD(p), ok
}
func (s shop) Revision() uint64          { return 0 }
func (s shop) Left(string) (int64, bool) { return 0, false }
func (s shop) Unavailable(_ *instancetype.SKU, zone string, _ model.CapacityType) (string, bool) {
	if zone == s.blocked {
		return "blocked", false
	}
	return "", false
}

func ranked(t *testing.T, s shop, claim string, requests model.Resources, requirements ...model.Requirement) []string {
	t.Helper()
	var skus []instancetype.SKU
	for _, name := range []string{"Standard_D2s_v5", "Standard_D4s_v5", "Standard_D4as_v5"} {
		sku := instancetype.SKU{
			Name: name, Family: "f", Arch: "amd64", VCPUs: 4, MemoryGiB: 16, Generations: []int{2}, Zones: []string{"1", "2"}, SpotCapable: true,
		}
		if name == "Standard_D2s_v5" {
			sku.VCPUs, sku.MemoryGiB = 2, 8
		}
		if name == "Standard_D4as_v5" {
			sku.UltraSSDZones = []string{"2"}
		}
		sku.Size, sku.SizeErr = instancetype.ParseSize(name)
		skus = append(skus, sku)
	}
	c := instancetype.New(instancetype.Region{Name: "eastus", DefaultMaxPods: 110}, instancetype.Market{Prices: s, Unavailable: s, Quota: s})
	c.SetSKUs(skus)
	var out []string
	for _, c := range Rank(c.For(&nodeclass.NodeClass{OSDiskSizeGB: 128, ImageFamily: "Ubuntu"}), requirements, requests, claim) {
		out = append(out, fmt.Sprintf("%s %s %s", c.Type.Name[len("Standard_"):], c.Offering.CapacityType, c.Offering.Zone))
	}
	return out
}

func in(key string, values ...string) model.Requirement {
	return model.Requirement{Key: key, Operator: model.In, Values: values}
}

var onDemandOnly = in(model.LabelCapacityType, "on-demand")

func TestRankOrdersByPrice(t *testing.T) {
	prices := shop{onDemand: map[string]float64{"Standard_D4s_v5": 2, "Standard_D4as_v5": 2, "Standard_D2s_v5": 1},
		spot: map[string]float64{"Standard_D4s_v5": 2, "Standard_D4as_v5": 0.5, "Standard_D2s_v5": 9}}
	got := ranked(t, prices, "c", model.Resources{3000})
	want := []string{
		// the cheapest, zonal before regional
		"D4as_v5 spot eastus-1", "D4as_v5 spot eastus-2", "D4as_v5 spot 0",
		// at the same price spot before on-demand
		"D4s_v5 spot eastus-1", "D4s_v5 spot eastus-2", "D4s_v5 spot 0",
		// zonal before regional, then by name
		"D4as_v5 on-demand eastus-1", "D4as_v5 on-demand eastus-2", "D4s_v5 on-demand eastus-1", "D4s_v5 on-demand eastus-2",
		"D4as_v5 on-demand 0", "D4s_v5 on-demand 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("D2s_v5 is too small for the request; the rest (-want +got):\n%s", diff)
	}
}

func TestRankRespectsRequirements(t *testing.T) {
	prices := shop{onDemand: map[string]float64{"Standard_D4s_v5": 2, "Standard_D4as_v5": 1, "Standard_D2s_v5": 3}}
	tests := []struct {
		name string
		ask  []model.Requirement
		want int
	}{
		{"nothing asked", []model.Requirement{onDemandOnly}, 9},
		{"one zone", []model.Requirement{onDemandOnly, in(model.LabelZone, "eastus-2")}, 3},
		{"regional", []model.Requirement{onDemandOnly, in(instancetype.LabelPlacementScope, "regional")}, 3},
		{"at least 3 vCPUs", []model.Requirement{onDemandOnly, {Key: instancetype.LabelSKUCPU, Operator: model.Gt, Values: []string{"2"}}}, 6},
		{"a label that sizes do not decide", []model.Requirement{onDemandOnly, in("team", "blue")}, 9},
		{"a GPU, which none has", []model.Requirement{onDemandOnly, {Key: instancetype.LabelSKUGPUName, Operator: model.Exists}}, 0},
		{"no GPU", []model.Requirement{onDemandOnly, {Key: instancetype.LabelSKUGPUName, Operator: model.DoesNotExist}}, 9},
		{"ultra disks, where a zone has them", []model.Requirement{onDemandOnly, in(instancetype.LabelSKUUltraSSD, "true")}, 1},
		{"system mode, which is the buyer's choice", []model.Requirement{onDemandOnly, in(instancetype.LabelAKSMode, "system")}, 9},
		{"a mode that there is not", []model.Requirement{onDemandOnly, in(instancetype.LabelAKSMode, "other")}, 0},
	}
	for _, tt := range tests {
		if got := ranked(t, prices, "b", nil, tt.ask...); len(got) != tt.want {
			t.Errorf("%s: %d candidates, want %d: %v", tt.name, len(got), tt.want, got)
		}
	}
}

func TestRankDistributesEqualZones(t *testing.T) {
	prices := shop{onDemand: map[string]float64{"Standard_D4s_v5": 1}}
	first := map[string]int{}
	for i := range 100 {
		first[ranked(t, prices, fmt.Sprintf("general-%d", i), nil, onDemandOnly, in(model.LabelInstanceType, "Standard_D4s_v5"))[0]]++
	}
	if len(first) != 2 || first["D4s_v5 on-demand eastus-1"] < 20 || first["D4s_v5 on-demand eastus-2"] < 20 {
		t.Errorf("first choices of 100 claims: %v, want both zones", first)
	}
}

func TestRankOmitsUnavailableOfferings(t *testing.T) {
	prices := shop{onDemand: map[string]float64{"Standard_D4s_v5": 1}, blocked: "eastus-1"}
	for _, c := range ranked(t, prices, "b", nil, in(model.LabelZone, "eastus-1")) {
		t.Errorf("candidate %s", c)
	}
}

// What was refused is remembered by size, zone and capacity type.
func TestAttemptNamesSizeZoneAndCapacityType(t *testing.T) {
	sku := &instancetype.SKU{Name: "Standard_D4s_v5"}
	c := Candidate{SKU: sku, Offering: &model.Offering{Zone: "eastus-2", CapacityType: model.Spot}}
	if got, want := c.attempt(), (unavailable.Attempt{SKU: sku, Zone: "eastus-2", CapacityType: model.Spot}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
