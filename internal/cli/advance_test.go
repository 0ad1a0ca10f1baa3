package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/controller/offline"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Commands count what is paid in advance as the controller does, from the user's file and from
// what the controller publishes: its offerings at its prices, and its lines with what machines
// leave.
func TestCommandsCountReservationsAsTheController(t *testing.T) {
	const size = "Standard_D4s_v5"
	terms := &price.Terms{
		Reservations: []price.Reservation{{Size: size, Count: 2, Hourly: 0.01}},
		SavingsPlans: []price.SavingsPlan{{Name: "team", Hourly: 0.5, Prices: map[string]float64{size: 0.1}}},
	}
	text, err := yaml.Marshal(terms)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	document := &snapshot.Document{}
	collector := &snapshot.Collector{
		Clock: clock.RealClock{}, Health: func() (string, string) { return "", "" },
		Market: func() snapshot.Market { return snapshot.Market{Region: "eastus", Terms: terms} },
	}
	if err := collector.Collect(t.Context(), document); err != nil {
		t.Fatal(err)
	}
	document.Status.Written.Time = time.Now()
	for name, flags := range map[string]catalogFlags{"file": {prices: file}, "snapshot": {}} {
		for _, machines := range []int{0, 1, 2, 4, 7} {
			read := &planInput{store: fleet.NewStore(), region: "eastus"}
			if name == "snapshot" {
				read.told = &told{document: document}
			}
			sizes := map[string]string{}
			for i := range machines {
				c := &fleet.Claim{Name: string(rune('a' + i)), ProviderID: "azure:///x", Labels: map[string]string{
					model.LabelInstanceType: size, model.LabelCapacityType: string(model.OnDemand)}}
				read.store.Put(c)
				sizes[c.Name] = size
			}
			source, err := read.source(t.Context(), flags)
			if err != nil {
				t.Fatal(err)
			}
			controllers, catalog := controllerCatalog(t, terms, sizes), source.ForClass("")
			got, want := offeringsOf(catalog, size), offeringsOf(controllers, size)
			if got[0].Price != want[0].Price || got[0].Uncovered != want[0].Uncovered {
				t.Errorf("%s, %d machines: %s beside %s, the controller has %s beside %s", name, machines,
					got[0].Price, got[0].Uncovered, want[0].Price, want[0].Uncovered)
			}
			for _, line := range controllers.Quotas {
				if !slices.Contains(catalog.Quotas, line) {
					t.Errorf("%s, %d machines: lines %v, the controller has %v", name, machines, catalog.Quotas, line)
				}
			}
			if last := got[len(got)-1]; last.Uncovered != 0 || last.Price != listPrice(t, size)+last.DiskPrice {
				t.Errorf("%s, %d machines: further ones cost %s", name, machines, last.Price)
			}
		}
	}
}

// controllerCatalog is what the controller plans with while it has these machines.
func controllerCatalog(t *testing.T, terms *price.Terms, machines map[string]string) *fleet.Catalog {
	t.Helper()
	prices, err := offline.OpenPrices("eastus", "", "")
	if err != nil {
		t.Fatal(err)
	}
	prices.Book.SetTerms(terms)
	prices.Book.SetMachines(machines, prices.Book.Change())
	told := offline.Granted()
	catalog := instancetype.New(instancetype.Region{Name: "eastus", MemoryOverhead: offline.MemoryOverhead, DefaultMaxPods: 250},
		instancetype.Market{Prices: prices.Book, Cover: prices.Book, Unavailable: told.Unavailable, Quota: told.Quota, Disks: prices.Disks})
	catalog.SetSKUs(prices.SKUs())
	return &fleet.Catalog{InstanceTypes: catalog.For(offline.DefaultNodeClass("")).Catalog.InstanceTypes, Quotas: prices.Book.Lines()}
}

// offeringsOf are the on-demand ones of a size in zone 1.
func offeringsOf(c *fleet.Catalog, size string) []model.Offering {
	var out []model.Offering
	for i := range c.InstanceTypes {
		for _, o := range c.InstanceTypes[i].Offerings {
			if c.InstanceTypes[i].Name == size && o.CapacityType == model.OnDemand && o.Zone == "eastus-1" {
				out = append(out, o)
			}
		}
	}
	return out
}

func listPrice(t *testing.T, size string) model.Money {
	t.Helper()
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	dollars, sold := table.Price(size, "eastus")
	if !sold {
		t.Fatalf("%s is not sold", size)
	}
	return model.USD(dollars)
}
