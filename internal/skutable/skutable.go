// Package skutable holds what is known about Azure VM sizes without asking
// Azure: 774 sizes, their pay-as-you-go Linux prices in eight regions, and two
// things that no public table states but a simulation needs, spot prices and
// availability zones.
//
// The published part is the embedded file sizes.csv, dated [Table.Date].
// Spot prices and zones are made up, deterministically: the same size and
// region give the same answer on every machine and in every release. Against a
// real subscription the Resource SKUs and Retail Prices APIs are the truth; the
// table serves the simulated Azure as ground truth and the command line as
// offline.
//
//	table, err := skutable.Load()
//	price, sold := table.Price("Standard_D4s_v5", "eastus")
package skutable

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed sizes.csv
var sizesCSV string

// date is the day on which the prices of sizes.csv were published.
const date = "2026-06-18"

// fixedColumns counts the columns of sizes.csv before the first region.
const fixedColumns = 15

// Table is the parsed file sizes.csv. It is immutable and safe for concurrent use.
type Table struct {
	sizes   []Size
	byName  map[string]int
	regions []string
	prices  [][]float64 // by size, then region; 0 means not sold there
}

// Size is one VM size. Memory, disks and counts are per machine.
type Size struct {
	Name              string  // Standard_D4s_v5
	Family            string  // D, E, NC, ...
	Series            string  // Ds_v5, or NC_A100 for accelerated ones
	Version           int     // 5; 0 where the series has none
	Arch              string  // amd64 or arm64
	VCPUs             int     // virtual CPUs
	MemoryGiB         float64 // 3.5 and the like occur
	GPUs              int     // 0 for most
	GPUName           string  // A100; empty without GPUs
	GPUManufacturer   string  // nvidia or amd; empty without GPUs
	PremiumStorage    bool    // can attach premium SSDs
	MaxDataDisks      int     // data disk slots
	TempDiskGiB       int     // local temporary disk, 0 when the size has none
	TempDiskNVMe      bool    // the temporary disk is NVMe, not SCSI
	HyperVGenerations []int   // 1, 2 or both
}

// Load gives the embedded table, which is parsed once. An error means that the
// file itself is damaged, which a test excludes.
func Load() (*Table, error) { return load() }

// load remembers its result, which never changes.
var load = sync.OnceValues(parse)

func parse() (*Table, error) {
	r := csv.NewReader(strings.NewReader(sizesCSV))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read the embedded size table: %w", err)
	}
	t := &Table{
		regions: rows[0][fixedColumns:],
		byName:  make(map[string]int, len(rows)),
	}
	for i, row := range rows[1:] {
		size, prices, err := parseRow(row)
		if err != nil {
			return nil, fmt.Errorf("read row %d of the embedded size table: %w", i+1, err)
		}
		t.byName[strings.ToLower(size.Name)] = len(t.sizes)
		t.sizes = append(t.sizes, size)
		t.prices = append(t.prices, prices)
	}
	return t, nil
}

// parseRow reads one line of the table: the fixed columns, then one price a region.
func parseRow(row []string) (Size, []float64, error) {
	var firstErr error
	whole := func(field, text string) int {
		if text == "" {
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("field %s: %q is not a whole number", field, text)
		}
		return n
	}
	number := func(field, text string) float64 {
		if text == "" {
			return 0
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("field %s: %q is not a number", field, text)
		}
		return f
	}
	s := Size{
		Name: row[0], Family: row[1], Series: row[2], Version: whole("version", row[3]), Arch: row[4],
		VCPUs: whole("vcpus", row[5]), MemoryGiB: number("memory_gib", row[6]),
		GPUs: whole("gpus", row[7]), GPUName: row[8], GPUManufacturer: row[9],
		PremiumStorage: row[10] == "yes", MaxDataDisks: whole("max_data_disks", row[11]),
		TempDiskGiB: whole("temp_disk_gib", row[12]), TempDiskNVMe: row[13] == "nvme",
	}
	for g := range strings.SplitSeq(row[14], ",") {
		s.HyperVGenerations = append(s.HyperVGenerations, whole("hyperv_generations", g))
	}
	prices := make([]float64, len(row)-fixedColumns)
	for i, text := range row[fixedColumns:] {
		prices[i] = number("price", text)
	}
	return s, prices, firstErr
}

// Date is the day of the prices, as 2006-01-02.
func (t *Table) Date() string { return date }

// Sizes lists every size in the order of the file, which is by name. The
// caller must not change it.
func (t *Table) Sizes() []Size { return t.sizes }

// Size finds a size by name, ignoring case as Azure does.
func (t *Table) Size(name string) (Size, bool) {
	i, ok := t.byName[strings.ToLower(name)]
	if !ok {
		return Size{}, false
	}
	return t.sizes[i], true
}

// Regions lists the regions with prices.
func (t *Table) Regions() []string { return slices.Clone(t.regions) }

// Price is the pay-as-you-go Linux price in USD per hour; false when the size
// is unknown or not sold in the region.
func (t *Table) Price(size, region string) (float64, bool) {
	i, ok := t.byName[strings.ToLower(size)]
	r := slices.Index(t.regions, strings.ToLower(region))
	if !ok || r < 0 || t.prices[i][r] == 0 {
		return 0, false
	}
	return t.prices[i][r], true
}
