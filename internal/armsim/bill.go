package armsim

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/retailprices"
)

// Bill is what the simulated Azure bills for, from its audit log and its own price lists:
// virtual machines from when they were accepted until they are gone or taken back, and
// managed disks while they exist. Fixed machines of agent pools are not in it.
type Bill struct {
	// Until is up to when it counts.
	Until time.Time `json:"until"`
	// Machines and Disks are dollars.
	Machines float64    `json:"machines"`
	Disks    float64    `json:"disks"`
	Lines    []BillLine `json:"lines"`
}

// Total is all of it, in dollars.
func (b *Bill) Total() float64 { return b.Machines + b.Disks }

// BillLine is one resource.
type BillLine struct {
	Resource string `json:"resource"`
	// Meter is what it is billed as: the size and priority of a machine, the tier of a disk.
	Meter   string    `json:"meter"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Dollars float64   `json:"dollars"`
}

// Bill adds up what everything that nap made has cost so far.
func (s *Server) Bill() (bill *Bill) {
	s.locked(func() {
		bill = makeBill(s.sub.Audit.After(0), s.sub.Clock.Now(), tariff{s.prices, s.sub.Region})
	})
	return bill
}

// tariff are the price lists of a region.
type tariff struct {
	prices *retailprices.Provider
	region string
}

// priceChange is that a size costs another price from a moment on, in dollars per hour.
type priceChange struct {
	at     time.Time
	before float64
}

// makeBill reads the audit log.
func makeBill(entries []arm.AuditEntry, until time.Time, prices tariff) *Bill {
	bill := &Bill{Until: until}
	open, changes := map[string]*BillLine{}, map[string][]priceChange{}
	end := func(resource string, at time.Time) {
		if line := open[arm.Key(resource)]; line != nil {
			line.To = at
			bill.Lines = append(bill.Lines, *line)
			delete(open, arm.Key(resource))
		}
	}
	for _, e := range entries {
		switch e.Action {
		case "vm.accepted", "disk.created":
			if open[arm.Key(e.Resource)] == nil && e.Detail != "again" {
				open[arm.Key(e.Resource)] = &BillLine{Resource: e.Resource, Meter: e.Detail, From: e.Time}
			}
		case "vm.failed":
			delete(open, arm.Key(e.Resource))
		case "vm.evicted", "vm.deleted", "disk.deleted":
			end(e.Resource, e.Time)
		case actionPriceSet:
			meter, before := parsePriceSet(e.Detail)
			changes[meter] = append(changes[meter], priceChange{e.Time, before})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		end(open[key].Resource, until)
	}
	for i := range bill.Lines {
		line := &bill.Lines[i]
		if size, priority, is := machineMeter(line.Meter); is {
			line.Meter = size + " " + priority
			line.Dollars = prices.machine(line, size, priority, changes[meterOf(size, priority == arm.Spot)])
			bill.Machines += line.Dollars
			continue
		}
		sku, gib := diskMeter(line.Meter)
		line.Dollars = retailprices.Disk(prices.region, sku, gib) * line.To.Sub(line.From).Hours()
		bill.Disks += line.Dollars
	}
	slices.SortStableFunc(bill.Lines, func(x, y BillLine) int { return cmp.Or(x.From.Compare(y.From), cmp.Compare(x.Resource, y.Resource)) })
	return bill
}

// machine is what a machine has cost at the prices of its time.
func (t tariff) machine(line *BillLine, size, priority string, changes []priceChange) float64 {
	hourly, _ := t.prices.Price(size, priority == arm.Spot)
	sum, to := 0.0, line.To
	for _, c := range slices.Backward(changes) {
		if c.at.Before(to) {
			from := c.at
			if from.Before(line.From) {
				from = line.From
			}
			sum += hourly * max(0, to.Sub(from).Hours())
			to = from
		}
		hourly = c.before
	}
	return sum + hourly*max(0, to.Sub(line.From).Hours())
}

// machineMeter reads the detail of vm.accepted: "Standard_D4s_v5 zone 1 Regular".
func machineMeter(detail string) (size, priority string, is bool) {
	words := strings.Fields(detail)
	if len(words) != 4 || words[1] != "zone" {
		return "", "", false
	}
	return words[0], words[3], true
}

// meterOf names the price of a size in the audit log.
func meterOf(size string, spot bool) string {
	priority := arm.Regular
	if spot {
		priority = arm.Spot
	}
	return strings.ToLower(size) + " " + priority
}

// actionPriceSet is the event that a price has changed; its detail is the meter and the
// price before.
const actionPriceSet = "price.set"

func parsePriceSet(detail string) (meter string, before float64) {
	meter, text, _ := arm.CutLast(detail, " was ")
	before, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", 0 // the log is the server's own
	}
	return meter, before
}

// diskMeter reads the detail of disk.created: "Premium_LRS 128".
func diskMeter(detail string) (sku string, gib int) {
	sku, text, _ := strings.Cut(detail, " ")
	gib, err := strconv.Atoi(text)
	if err != nil {
		return sku, 0
	}
	return sku, gib
}
