package retailprices

import (
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
	"sync"
)

// The published prices of managed disks in dollars per month, by region and tier. The
// simulator has a list of its own, so that its bill is a witness.
//
//go:embed disks.csv
var disksCSV string

// hoursPerMonth is the month by which Azure bills disks.
const hoursPerMonth = 730

// diskPrices is by region and tier, such as P10.
var diskPrices = sync.OnceValue(func() map[string]map[string]float64 {
	rows, err := csv.NewReader(strings.NewReader(disksCSV)).ReadAll()
	if err != nil {
		return nil // a test reads every price
	}
	out := map[string]map[string]float64{}
	for _, row := range rows[1:] {
		out[row[0]] = map[string]float64{}
		for i, field := range row[1:] {
			if price, err := strconv.ParseFloat(field, 64); err == nil {
				out[row[0]][rows[0][i+1]] = price
			}
		}
	}
	return out
})

// Disk is what a managed disk of so many GiB costs per hour in dollars: Premium_LRS, or any
// other SKU as Standard SSD. It is zero where the region or the size is not in the list.
func Disk(region, sku string, gib int) float64 {
	kind := "E"
	if sku == "Premium_LRS" {
		kind = "P"
	}
	for i, size := range []int{32, 64, 128, 256, 512, 1024, 2048, 4096} {
		if gib <= size {
			tier := []string{"4", "6", "10", "15", "20", "30", "40", "50"}[i]
			return diskPrices()[region][kind+tier] / hoursPerMonth
		}
	}
	return 0
}
