package price

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
)

// disksCSV has one row a region: dollars a month for each tier of Premium SSD (P4 to
// P50) and of Standard SSD (E4 to E50), locally redundant, as the Azure Retail Prices
// API published them on [DisksDate].
//
//go:embed disks.csv
var disksCSV string

// DisksDate is the day of the embedded disk prices, as 2006-01-02.
const DisksDate = "2026-09-23"

// diskTier is a size of managed disks. A disk is billed by the smallest tier that is
// not smaller than the disk, flat.
type diskTier struct {
	number string // 10 of P10 and E10
	gib    int64
}

// diskTiers are in ascending order.
func diskTiers() []diskTier {
	return []diskTier{{"4", 32}, {"6", 64}, {"10", 128}, {"15", 256}, {"20", 512}, {"30", 1024}, {"40", 2048}, {"50", 4096}}
}

// DiskTable has the prices of managed disks in all regions. It is immutable.
type DiskTable struct {
	// monthly has dollars by region and name of the tier, such as P10.
	monthly map[string]map[string]float64
}

// LoadDisks gives the embedded table, which is parsed once. An error means that the
// file itself is damaged, which a test excludes.
func LoadDisks() (*DiskTable, error) { return loadDisks() }

// loadDisks remembers its result, which never changes.
var loadDisks = sync.OnceValues(func() (*DiskTable, error) { return parseDisks(disksCSV) })

func parseDisks(text string) (*DiskTable, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the embedded disk prices: %w", err)
	}
	t := &DiskTable{monthly: map[string]map[string]float64{}}
	for i, row := range rows[1:] {
		prices := map[string]float64{}
		for j, field := range row[1:] {
			dollars, err := strconv.ParseFloat(field, 64)
			if err != nil || dollars <= 0 {
				return nil, fmt.Errorf("read the embedded disk prices: line %d, %s: %q is no price", i+2, rows[0][j+1], field)
			}
			prices[rows[0][j+1]] = dollars
		}
		t.monthly[row[0]] = prices
	}
	return t, nil
}

// Price is what a managed disk of so many GiB costs per hour: Premium SSD or Standard
// SSD. It is false where the region is not known or no tier is large enough.
func (t *DiskTable) Price(region string, gib int64, premium bool) (model.Money, bool) {
	kind := "E"
	if premium {
		kind = "P"
	}
	for _, tier := range diskTiers() {
		if gib <= tier.gib {
			dollars, ok := t.monthly[region][kind+tier.number]
			return model.USD(dollars / model.HoursPerMonth), ok
		}
	}
	return 0, false
}

// Disks are the prices of managed disks in one region.
type Disks struct {
	table  *DiskTable
	region string
}

// In returns the prices of a region: of [lastRegion] where the table does not have it.
func (t *DiskTable) In(region string) Disks {
	if t.monthly[region] == nil {
		region = lastRegion
	}
	return Disks{t, region}
}

// OSDisk is what a node's managed operating system disk costs per hour. Azure makes it
// a Premium SSD where the VM size can have one and nothing else is asked for, else a
// Standard SSD. It is zero for a disk beyond the largest tier, which no node class may
// ask for.
func (d Disks) OSDisk(gib int64, premium bool) model.Money {
	m, _ := d.table.Price(d.region, gib, premium)
	return m
}
