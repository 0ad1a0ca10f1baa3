package azure

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// refreshSKUsEvery is how often the region's sizes are read again.
const refreshSKUsEvery = 12 * time.Hour

// retrySKUsAfter is when they are read again after that has failed.
const retrySKUsAfter = 10 * time.Minute

// firstPrices is how long a start waits for retail prices, about 60 pages.
const firstPrices = time.Minute

// market is what can be bought and for how much: the region's sizes, their prices,
// the subscription's quotas, and what Azure has refused. It keeps them up to date.
type market struct {
	config *config.Config
	log    *slog.Logger
	skus   *armcompute.ResourceSKUsClient
	usage  *armcompute.UsageClient

	catalog   *instancetype.Catalog // made of everything below
	prices    *price.Book
	terms     *price.File   // nil when retail prices are paid
	retail    *price.Client // nil when the cloud has no price API
	quota     *quota.Tracker
	offerings *unavailable.Offerings
}

// newMarket returns a market that has not read anything from Azure; load does.
func newMarket(c *config.Config, cl clients, deps Deps) (*market, error) {
	table, err := skutable.Load()
	if err != nil {
		return nil, err
	}
	disks, err := price.LoadDisks()
	if err != nil {
		return nil, err
	}
	m := &market{
		config: c, log: deps.Log, skus: cl.skus, usage: cl.usage,
		prices: price.NewBook(table, c.Location), quota: quota.NewTracker(deps.Now), offerings: unavailable.New(deps.Now),
	}
	if deps.PricesFile != "" {
		if m.terms, err = price.OpenFile(deps.PricesFile, m.prices); err != nil {
			return nil, err
		}
	}
	if c.Cloud.HasRetailPrices() {
		m.retail = price.NewClient(c.Cloud.RetailPrices, deps.http(), deps.Now)
	}
	m.catalog = instancetype.New(Region(c), instancetype.Market{
		Prices: m.prices, Unavailable: m.offerings, Quota: m.quota, Cover: m.prices, Disks: disks.In(c.Location),
	})
	return m, nil
}

// Region is what all instance types of the cluster have in common.
func Region(c *config.Config) instancetype.Region {
	return instancetype.Region{
		Name: c.Location, MemoryOverhead: c.VMMemoryOverhead, ExactResources: c.ExactResources, DefaultMaxPods: c.DefaultMaxPods(),
		Labels: clusterLabels(c),
	}
}

// load reads everything once.
func (m *market) load(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return m.refreshSKUs(ctx) })
	group.Go(func() error {
		if err := m.quota.Refresh(ctx, m.usage, m.config.Location); err != nil {
			m.log.Warn("quota is unknown; every purchase is tried", "error", err)
		}
		return nil
	})
	group.Go(func() error {
		if m.retail == nil {
			m.log.Info("this cloud has no retail price API", "prices", m.prices.Source())
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, firstPrices)
		defer cancel()
		if err := m.prices.Refresh(ctx, m.retail, m.config.Location); err != nil {
			m.log.Warn("retail prices are unknown", "error", err, "prices", m.prices.Source())
		}
		return nil
	})
	err := group.Wait()
	if err == nil {
		m.warnUnmatched()
	}
	return err
}

// warnUnmatched tells of entries in the file of prices that are about no size of the region.
func (m *market) warnUnmatched() {
	terms := m.prices.Terms()
	if terms == nil {
		return
	}
	if unmatched := terms.Unmatched(m.catalog.Sizes()); len(unmatched) > 0 {
		m.log.Warn("entries in the file of prices match no size that the region sells, and have no effect", "entries", unmatched)
	}
}

// refreshSKUs reads the region's sizes again.
func (m *market) refreshSKUs(ctx context.Context) error {
	filter := fmt.Sprintf("location eq '%s'", m.config.Location)
	var skus []instancetype.SKU
	for pager := m.skus.NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: &filter}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list the VM sizes of region %s: %w", m.config.Location, err)
		}
		for _, raw := range page.Value {
			if sku, ok := instancetype.ParseSKU(raw, m.config.Location); ok {
				skus = append(skus, sku)
			}
		}
	}
	if len(skus) == 0 {
		return fmt.Errorf("list the VM sizes of region %s: Azure names none; check LOCATION", m.config.Location)
	}
	m.catalog.SetSKUs(skus)
	return nil
}

// run keeps everything up to date until the context ends.
func (m *market) run(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { m.quota.Run(ctx, m.usage, m.config.Location, m.log); return nil })
	group.Go(func() error { m.runSKUs(ctx); return nil })
	if m.retail != nil {
		group.Go(func() error { m.prices.Run(ctx, m.retail, m.config.Location, m.log); return nil })
	}
	if m.terms != nil {
		group.Go(func() error { m.terms.Run(ctx, m.log, m.warnUnmatched); return nil })
	}
}

func (m *market) runSKUs(ctx context.Context) {
	timer := time.NewTimer(refreshSKUsEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			next := refreshSKUsEvery
			if err := m.refreshSKUs(ctx); err != nil && ctx.Err() == nil {
				m.log.Warn("size refresh failed", "error", err, "again in", retrySKUsAfter.String())
				next = retrySKUsAfter
			}
			timer.Reset(next)
		}
	}
}
