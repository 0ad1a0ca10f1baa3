package price

import (
	"math"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestDiskPriceByTier(t *testing.T) {
	table, err := LoadDisks()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(table.monthly); n < 60 {
		t.Errorf("%d regions, want all of Azure's", n)
	}
	tests := []struct {
		region  string
		gib     int64
		premium bool
		monthly float64 // as published
	}{
		{"eastus", 30, true, 5.279}, {"eastus", 32, true, 5.279}, {"eastus", 33, true, 10.207},
		{"eastus", 128, true, 19.71}, {"eastus", 129, true, 38.012}, {"eastus", 2048, true, 259.046},
		{"eastus", 128, false, 9.6},
	}
	for _, tc := range tests {
		got, ok := table.Price(tc.region, tc.gib, tc.premium)
		if monthly := got.Dollars() * model.HoursPerMonth; !ok || math.Abs(monthly-tc.monthly) > 0.01 {
			t.Errorf("%d GiB in %s, premium %v: %v a month (%v), want %v", tc.gib, tc.region, tc.premium, monthly, ok, tc.monthly)
		}
	}
	if _, ok := table.Price("moon", 128, true); ok {
		t.Error("the moon has prices")
	}
	if _, ok := table.Price("eastus", 5000, true); ok {
		t.Error("a disk beyond the largest tier has a price")
	}
	if got, want := table.In("moon").OSDisk(128, true), table.In("eastus").OSDisk(128, true); got != want || got == 0 {
		t.Errorf("an unknown region's disk costs %v, want that of eastus, %v", got, want)
	}
}

// A larger disk never costs less, nor does a premium one.
func TestDiskPricesGrow(t *testing.T) {
	table, err := LoadDisks()
	if err != nil {
		t.Fatal(err)
	}
	for region := range table.monthly {
		disks := table.In(region)
		for gib := int64(1); gib <= 4096; gib++ {
			for _, premium := range []bool{true, false} {
				if disks.OSDisk(gib, premium) < disks.OSDisk(gib-1, premium) || disks.OSDisk(gib, true) < disks.OSDisk(gib, false) {
					t.Fatalf("%s: %d GiB costs less than a smaller or a plainer disk", region, gib)
				}
			}
		}
	}
}

func TestDamagedDiskTableIsRefused(t *testing.T) {
	_, err := parseDisks("region,P4\neastus,cheap\n")
	if err == nil || !strings.Contains(err.Error(), `line 2, P4: "cheap"`) {
		t.Errorf("error %v, want line, column and value", err)
	}
}
