// Package price knows what VM sizes cost per hour in one region.
//
// A [Book] starts with the published table that nap carries (package
// catalogue) and is replaced by what Azure's retail price API says
// ([Client.Fetch], [Book.Run]). A failed or empty answer keeps what is there, and a
// controller that starts begins with what the one before has read ([Memory]).
// What the subscription pays instead, by contract, reservation or savings plan,
// comes from a file ([Terms], [OpenFile]).
package price

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

const (
	// refreshEvery is how often the retail API is asked; prices change by the day.
	refreshEvery = 12 * time.Hour
	// retryEvery is how often it is asked after it did not answer.
	retryEvery = 10 * time.Minute
)

// lastRegion prices sizes that the embedded table does not have for a region. It sells
// most of them.
const lastRegion = "eastus"

// Table holds prices by VM size.
type Table struct {
	OnDemand, Spot map[string]model.Money
}

// Book is the price list of a region. It is safe for concurrent use.
type Book struct {
	mu       sync.Mutex
	region   string
	table    Table     // retail, and what the embedded table says where that says nothing
	retail   Table     // as the retail API had them
	read     time.Time // when it had them, zero for never
	due      Table     // what the terms make of it
	source   string
	failed   bool // the last refresh did
	terms    Terms
	advance  *model.Advance // of the terms
	machines machines       // which use it up
	revision uint64
}

// NewBook returns a book with the embedded prices of the region, or of the nearest one
// that has any. Spot prices are not published there: they are estimates until the retail
// API has answered, and a size that is not sold as spot, by the table, costs what it does
// on demand.
func NewBook(table *skutable.Table, region string) *Book {
	onDemand, spot := map[string]model.Money{}, map[string]model.Money{}
	nearest := Nearest(region, table.Regions())
	for _, s := range table.Sizes() {
		of := nearest
		dollars, ok := table.Price(s.Name, of)
		if !ok {
			of = lastRegion
			dollars, ok = table.Price(s.Name, of)
		}
		if !ok {
			continue
		}
		onDemand[s.Name], spot[s.Name] = model.USD(dollars), model.USD(dollars)
		if estimate, sold := table.SpotPrice(s.Name, of); sold {
			spot[s.Name] = model.USD(estimate)
		}
	}
	b := &Book{region: region, table: Table{OnDemand: onDemand, Spot: spot}, source: "embedded table of " + table.Date()}
	if nearest != region {
		b.source += " for " + nearest + ", the nearest region that it has"
	}
	b.source += "; spot prices are estimates"
	b.settle()
	return b
}

// Price is the hourly price of a size by the terms, or the retail price where they
// say nothing; false when it is not known.
func (b *Book) Price(size string, capacityType model.CapacityType) (model.Money, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	prices := b.due.OnDemand
	if capacityType == model.Spot {
		prices = b.due.Spot
	}
	m, ok := prices[size]
	return m, ok
}

// NodeCost is what a node of the size costs per hour beside its machine and its disk,
// by the terms.
func (b *Book) NodeCost(size string, capacityType model.CapacityType) model.Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.terms.perNode(size, capacityType)
}

// Revision changes whenever any price does.
func (b *Book) Revision() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revision
}

// Source says where the prices come from, for people.
func (b *Book) Source() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.source
}

// SpotEstimated reports whether spot prices are estimates: no retail prices are known.
func (b *Book) SpotEstimated() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read.IsZero()
}

// adopt lays retail prices over the old ones that were read at a time: sizes that are missing
// keep theirs. By ends the sentence that says where they come from. The caller holds mu.
func (b *Book) adopt(t Table, read time.Time, by string) {
	b.retail, b.read, b.source = t, read, "retail prices of "+read.UTC().Format(time.RFC3339)+by
	onDemand, spot := maps.Clone(b.table.OnDemand), maps.Clone(b.table.Spot)
	maps.Copy(onDemand, t.OnDemand)
	maps.Copy(spot, t.Spot)
	if maps.Equal(onDemand, b.table.OnDemand) && maps.Equal(spot, b.table.Spot) {
		return
	}
	b.table = Table{onDemand, spot}
	b.settle()
}

// settle applies the terms to the retail prices. The caller holds mu, or is alone.
func (b *Book) settle() {
	b.due = Table{
		OnDemand: b.terms.apply(b.table.OnDemand, model.OnDemand),
		Spot:     b.terms.apply(b.table.Spot, model.Spot),
	}
	b.advance = b.terms.advance(b.due.OnDemand)
	b.machines.recount(b.advance)
	b.revision++
}

// Refresh asks the retail API once.
func (b *Book) Refresh(ctx context.Context, client *Client, region string) error {
	table, err := client.Fetch(ctx, region)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = err != nil
	if err == nil {
		b.adopt(table, client.now(), "")
	}
	return err
}

// Run refreshes the book until the context ends. A failed refresh keeps the old
// prices and is repeated sooner.
func (b *Book) Run(ctx context.Context, client *Client, region string, log *slog.Logger) {
	for {
		timer := time.NewTimer(b.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := b.Refresh(ctx, client, region); err != nil && ctx.Err() == nil {
			log.Warn("price refresh failed", "error", err, "prices", b.Source())
		}
	}
}

// pause is the time until the next refresh.
func (b *Book) pause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed {
		return retryEvery
	}
	return refreshEvery
}
