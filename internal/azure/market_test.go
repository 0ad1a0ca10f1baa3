package azure

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// A misspelled size in the file of prices is told, once for all that there are.
func TestMisspelledSizesOfPricesAreLogged(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	for size, logged := range map[string]bool{"Standard_Nosuch": true, "standard_d4s_v5": false} {
		var log strings.Builder
		m := &market{
			log: slog.New(slog.NewTextHandler(&log, nil)), prices: price.NewBook(table, "eastus"),
			catalog: instancetype.New(instancetype.Region{}, instancetype.Market{}),
		}
		m.catalog.SetSKUs([]instancetype.SKU{{Name: "Standard_D4s_v5"}})
		m.prices.SetTerms(&price.Terms{Reservations: []price.Reservation{{Size: size, Count: 1}}})
		m.warnUnmatched()
		if got := log.String(); strings.Contains(got, "reservations[0].size") != logged {
			t.Errorf("reservation of %s: logged is %q", size, got)
		}
	}
}
