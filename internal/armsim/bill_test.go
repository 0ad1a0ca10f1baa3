package armsim

import (
	"math"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/retailprices"
)

func TestBillCountsWhatTheAuditLogSays(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	began := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	entry := func(minutes int, action, resource, detail string) arm.AuditEntry {
		return arm.AuditEntry{Time: began.Add(time.Duration(minutes) * time.Minute), Action: action, Resource: resource, Detail: detail}
	}
	const vm = "Standard_D4s_v5 zone 1 Regular"
	bill := makeBill([]arm.AuditEntry{
		entry(0, "vm.accepted", "/vm/a", vm),
		entry(0, "disk.created", "/disk/a", "Premium_LRS 128"),
		entry(0, "vm.accepted", "/vm/failed", vm),
		entry(1, "vm.failed", "/vm/failed", "AllocationFailed"),
		entry(30, actionPriceSet, "", meterOf("Standard_D4s_v5", false)+" was 0.1"),
		entry(60, "vm.deleted", "/vm/A", ""),
		entry(60, "disk.deleted", "/disk/a", ""),
		entry(60, "vm.accepted", "/vm/a", vm), // a namesake
	}, began.Add(90*time.Minute), tariff{s.prices, s.sub.Region})
	price, _ := s.prices.Price("Standard_D4s_v5", false)
	disk := retailprices.Disk(s.sub.Region, "Premium_LRS", 128)
	if want := 0.5*0.1 + price; math.Abs(bill.Machines-want) > 1e-9 || price == 0 {
		t.Errorf("machines are billed $%.6f, want $%.6f", bill.Machines, want)
	}
	if math.Abs(bill.Disks-disk) > 1e-9 || disk == 0 {
		t.Errorf("disks are billed $%.6f, want $%.6f", bill.Disks, disk)
	}
	if len(bill.Lines) != 3 {
		t.Errorf("the bill has %d lines, want 3: %v", len(bill.Lines), bill.Lines)
	}
}

func TestDiskPricesAreOfThePublishedTiers(t *testing.T) {
	for _, c := range []struct {
		sku  string
		gib  int
		want float64 // dollars a month
	}{{"Premium_LRS", 128, 19.71}, {"Premium_LRS", 129, 38.012}, {"StandardSSD_LRS", 30, 3.264}, {"Premium_LRS", 5000, 0}} {
		if got := retailprices.Disk("australiaeast", c.sku, c.gib) * 730; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("a disk %s of %d GiB costs $%.3f a month, want $%.3f", c.sku, c.gib, got, c.want)
		}
	}
}
