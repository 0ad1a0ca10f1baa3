package cli

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// offlinePrices are the prices of a region for a command that asks no cloud.
type offlinePrices struct {
	table *skutable.Table
	// nearest is the region of the built-in table that stands for the one asked for.
	nearest string
	book    *price.Book
	disks   price.Disks
	// note says where the prices come from.
	note string
}

// checkRegion writes the region of the flags as Azure's API does. A catalogue has a name
// of its own for its region.
func (f *catalogFlags) checkRegion() error {
	if f.region == "" || f.file != "" {
		return nil
	}
	name, err := price.RegionName(f.region)
	if err != nil {
		return fmt.Errorf("--region: %w", err)
	}
	f.region = name
	return nil
}

// openPrices lays the user's file, if there is one, over the built-in prices of the
// region, or of the nearest region that has any.
func (f catalogFlags) openPrices(region string) (*offlinePrices, error) {
	table, err := skutable.Load()
	if err != nil {
		return nil, err
	}
	disks, err := price.LoadDisks()
	if err != nil {
		return nil, err
	}
	p := &offlinePrices{
		table: table, nearest: price.Nearest(region, table.Regions()),
		book: price.NewBook(table, region), disks: disks.In(region),
	}
	p.book.Update(price.Table{Spot: spotEstimates(table, p.nearest)}, "")
	if f.prices != "" {
		if _, err := price.OpenFile(f.prices, p.book); err != nil {
			return nil, err
		}
	}
	p.note = p.origin(region, f.prices)
	if len(p.book.Lines()) > 0 {
		p.note += "; reservations and savings plans are left out, since a file does not say what uses them up"
	}
	return p, nil
}

// origin says in one sentence where the prices come from.
func (p *offlinePrices) origin(region, file string) string {
	var parts []string
	if file != "" {
		parts = append(parts, "prices of "+file)
	}
	what := fmt.Sprintf("prices of %s, %s", region, p.table.Date())
	if p.nearest != region {
		what = fmt.Sprintf("no prices of %s are built in: those of %s, %s, the nearest region, are an estimate "+
			"(nap prices fetch --region %s gets the real ones)",
			region, p.nearest, p.table.Date(), region)
	}
	if file != "" {
		what = "for what it leaves out " + what
	}
	parts = append(parts, what)
	return strings.Join(parts, "; ") + ", managed disks of " + price.DisksDate + " included"
}

// spotEstimates are the spot prices of the built-in table, which has none of Azure's.
func spotEstimates(table *skutable.Table, region string) map[string]model.Money {
	out := map[string]model.Money{}
	for _, s := range table.Sizes() {
		if dollars, sold := table.SpotPrice(s.Name, region); sold {
			out[s.Name] = model.USD(dollars)
		}
	}
	return out
}
