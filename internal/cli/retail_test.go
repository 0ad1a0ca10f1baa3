package cli

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// On a live cluster commands plan with the retail prices that the controller has read, not
// with those that nap was built with.
func TestCommandsTakeTheControllersRetailPrices(t *testing.T) {
	const size = "Standard_D4s_v5"
	document := &snapshot.Document{Memory: map[string]string{snapshot.MemoryPrices: `{"region":"eastus","read":"2026-11-20T06:00:00Z",` +
		`"onDemand":{"Standard_D4s_v5":150000},"spot":{"Standard_D4s_v5":31000}}`}}
	source := func(region string) (onDemand, spot model.Money, note string) {
		read := &planInput{store: fleet.NewStore(), region: region, told: &told{document: document}}
		source, err := read.source(t.Context(), catalogFlags{})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range source.ForClass("").InstanceTypes {
			for _, o := range kind.Offerings {
				switch {
				case kind.Name != size:
				case o.CapacityType == model.Spot:
					spot = o.Price - o.DiskPrice
				default:
					onDemand = o.Price - o.DiskPrice
				}
			}
		}
		return onDemand, spot, source.Note
	}
	onDemand, spot, note := source("eastus")
	if onDemand != model.USD(0.15) || spot != model.USD(0.031) {
		t.Errorf("on demand %s, spot %s", onDemand, spot)
	}
	if !strings.Contains(note, "retail prices of 2026-11-20T06:00:00Z, from the snapshot") || strings.Contains(note, "spot prices and zones") {
		t.Errorf("prices are said to be %q", note)
	}
	if onDemand, _, note := source("westeurope"); onDemand == model.USD(0.15) || !strings.Contains(note, "spot prices and zones are estimates") {
		t.Errorf("another region's prices were taken: %s, %q", onDemand, note)
	}
	document.Memory[snapshot.MemoryPrices] = "{"
	read := &planInput{store: fleet.NewStore(), region: "eastus", told: &told{document: document}}
	if _, err := read.source(t.Context(), catalogFlags{}); err == nil || !strings.Contains(err.Error(), "the snapshot of nap's controller") {
		t.Errorf("broken prices of the snapshot: %v", err)
	}
}
