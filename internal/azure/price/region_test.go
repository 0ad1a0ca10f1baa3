package price

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Of the regions of Azure China no prices are published, of disks neither.
func TestRegionsAreThoseWithDiskPrices(t *testing.T) {
	disks, err := LoadDisks()
	if err != nil {
		t.Fatal(err)
	}
	published := slices.DeleteFunc(Regions(), InChina)
	if got, want := published, slices.Sorted(maps.Keys(disks.monthly)); !slices.Equal(got, want) {
		t.Errorf("regions with a place: %v\nwith disk prices: %v", got, want)
	}
}

func TestRegionName(t *testing.T) {
	for written, want := range map[string]string{
		"westeurope": "westeurope", "West Europe": "westeurope", " SwedenCentral ": "swedencentral", "US Gov Virginia": "usgovvirginia",
		"China East 2": "chinaeast2", "chinanorth3": "chinanorth3",
	} {
		if got, err := RegionName(written); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", written, got, err, want)
		}
	}
	_, err := RegionName("swedencentrl")
	if err == nil || !strings.Contains(err.Error(), "swedencentral, swedensouth") || strings.Contains(err.Error(), "eastus") {
		t.Errorf("error %v, want the names that begin alike", err)
	}
	if _, err := RegionName("estus"); err == nil || !strings.Contains(err.Error(), "written alike: eastus, westus, ") {
		t.Errorf("error %v, want the name with a letter more first", err)
	}
	if _, err := RegionName(""); err == nil || !strings.Contains(err.Error(), "eastus") {
		t.Errorf("error %v, want all names", err)
	}
}

func TestRegionsOfOtherClouds(t *testing.T) {
	for region, public := range map[string]bool{"eastus": true, "usgovvirginia": false, "chinanorth3": false, "moon": true} {
		if got := InPublicCloud(region); got != public {
			t.Errorf("%s: public cloud %v, want %v", region, got, public)
		}
	}
}

func TestNearestRegion(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	for region, want := range map[string]string{
		"eastus": "eastus", "swedencentral": "westeurope", "ukwest": "uksouth", "japaneast": "southeastasia",
		"westus2": "westus3", "mexicocentral": "southcentralus", "chinanorth3": "southeastasia", "moon": table.Regions()[0],
	} {
		if got := Nearest(region, table.Regions()); got != want {
			t.Errorf("nearest to %s is %s, want %s", region, got, want)
		}
	}
}
