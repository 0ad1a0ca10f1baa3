package skutable

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func table(t *testing.T) *Table {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEmbeddedTableIsComplete(t *testing.T) {
	c := table(t)
	if got := len(c.Sizes()); got != 774 {
		t.Errorf("%d sizes, want 774", got)
	}
	if got := len(c.Regions()); got != 8 {
		t.Errorf("%d regions, want 8", got)
	}
	for _, s := range c.Sizes() {
		if s.VCPUs < 1 || s.MemoryGiB <= 0 || len(s.HyperVGenerations) == 0 {
			t.Errorf("%s: %d vCPUs, %v GiB, generations %v", s.Name, s.VCPUs, s.MemoryGiB, s.HyperVGenerations)
		}
		if (s.GPUs > 0) != (s.GPUManufacturer != "") {
			t.Errorf("%s: %d GPUs by %q", s.Name, s.GPUs, s.GPUManufacturer)
		}
	}
}

func TestSizeLookupIgnoresCase(t *testing.T) {
	c := table(t)
	want := Size{Name: "Standard_D4s_v5", Family: "D", Series: "Ds_v5", Version: 5, Arch: "amd64", VCPUs: 4, MemoryGiB: 16,
		PremiumStorage: true, MaxDataDisks: 8, HyperVGenerations: []int{1, 2}}
	got, ok := c.Size("standard_d4S_v5")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("found %v, (-want +got):\n%s", ok, diff)
	}
	if p, ok := c.Price("Standard_D4s_v5", "eastus"); !ok || p != 0.192 {
		t.Errorf("price %v %v, want 0.192", p, ok)
	}
	if _, ok := c.Price("Standard_D4s_v5", "mars"); ok {
		t.Error("a price on mars")
	}
}

func TestQuotaFamiliesHaveAzureNames(t *testing.T) {
	c := table(t)
	for name, want := range map[string]string{
		"Standard_D4s_v5":          "standardDSv5Family",
		"Standard_D4ads_v5":        "standardDADSv5Family",
		"Standard_D4_v5":           "standardDv5Family",
		"Standard_E4bds_v5":        "standardEBDSv5Family",
		"Standard_F4s_v2":          "standardFSv2Family",
		"Standard_D4as_v6":         "StandardDasv6Family",
		"Standard_B4als_v2":        "standardBasv2Family",
		"Standard_NC4as_T4_v3":     "Standard NCASv3_T4 Family",
		"Standard_NC24ads_A100_v4": "StandardNCADSA100v4Family",
	} {
		s, ok := c.Size(name)
		if !ok || s.QuotaFamily() != want {
			t.Errorf("%s: %q, want %q", name, s.QuotaFamily(), want)
		}
	}
}

func TestZonesPerSizeDistribution(t *testing.T) {
	c := table(t)
	for _, region := range c.Regions() {
		count := map[int]int{}
		for _, s := range c.Sizes() {
			if _, sold := c.Price(s.Name, region); sold {
				count[len(c.Zones(s.Name, region))]++
			}
		}
		if count[0] != 0 || count[3] < 4*count[2] || count[2] < count[1] || count[1] == 0 {
			t.Errorf("%s: sizes by number of zones %v", region, count)
		}
	}
	if !slices.Equal(c.Zones("Standard_D4s_v5", "eastus"), c.Zones("Standard_D4s_v5", "eastus")) {
		t.Error("zones change between two calls")
	}
}

func TestSpotDiscountRangeAndNoBurstableSpot(t *testing.T) {
	c := table(t)
	offered := 0
	for _, s := range c.Sizes() {
		spot, ok := c.SpotPrice(s.Name, "eastus")
		if !ok {
			continue
		}
		offered++
		full, _ := c.Price(s.Name, "eastus")
		if ratio := spot / full; ratio < 0.095 || ratio > 0.55 {
			t.Errorf("%s: spot %v of %v", s.Name, spot, full)
		}
		if s.Family == "B" {
			t.Errorf("%s is burstable and offered as spot", s.Name)
		}
	}
	if offered < 600 || offered > 740 {
		t.Errorf("%d sizes offered as spot", offered)
	}
}

func TestEphemeralDiskFitsLocalDisk(t *testing.T) {
	c := table(t)
	for name, want := range map[string][]string{
		"Standard_D4s_v5":  nil,
		"Standard_D4ds_v5": {"ResourceDisk", "CacheDisk"},
		"Standard_D4ds_v6": {"NvmeDisk"},
	} {
		s, _ := c.Size(name)
		if diff := cmp.Diff(want, s.EphemeralOSPlacements()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if s, _ := c.Size("Standard_D4ds_v6"); !slices.Equal(s.DiskControllers(), []string{"NVMe"}) {
		t.Errorf("controllers of Standard_D4ds_v6: %v", s.DiskControllers())
	}
}
