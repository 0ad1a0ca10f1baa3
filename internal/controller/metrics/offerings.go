package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// priceWithin bounds how long a scrape waits for prices.
const priceWithin = 5 * time.Second

// Offerings tells what offerings cost, under the name and with the labels by which Karpenter's
// providers of other clouds do, and dashboards ask: for the sizes and zones of nodes and of the
// last plan alone, since a region sells thousands.
type Offerings struct {
	price  *prometheus.Desc
	priced func(ctx context.Context, further []fleet.Place) ([]fleet.PricedOffering, error)

	mu   sync.Mutex
	last []fleet.Place // of the last plan
}

// NewOfferings registers the metric. Priced are the offerings in the places of nodes and of
// further places.
func NewOfferings(
	reg prometheus.Registerer, priced func(ctx context.Context, further []fleet.Place) ([]fleet.PricedOffering, error),
) (*Offerings, error) {
	var err error
	o := register(reg, &Offerings{
		price: prometheus.NewDesc("karpenter_cloudprovider_instance_type_offering_price_estimate",
			"Dollars per hour of an offering, with the disk and what nodes cost besides: of sizes and zones in which there are nodes, "+
				"or of which the last plan has bought some.",
			[]string{"instance_type", "capacity_type", "zone"}, nil),
	}, &err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.priced = priced
	return o, err
}

// Planned remembers what a plan for a problem buys. Plans that buy nothing leave what was
// bought before.
func (o *Offerings) Planned(p *model.Problem, plan *model.Plan) {
	if len(plan.NewNodes) == 0 {
		return
	}
	var places []fleet.Place
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		t := &p.Catalogs[p.Pools[n.Pool].Catalog].InstanceTypes[n.Best().InstanceType]
		places = append(places, fleet.Place{InstanceType: t.Name, Zone: t.Offerings[n.Best().Offering].Zone})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = places
}

// Describe implements prometheus.Collector.
func (o *Offerings) Describe(descs chan<- *prometheus.Desc) { descs <- o.price }

// Collect implements prometheus.Collector.
func (o *Offerings) Collect(out chan<- prometheus.Metric) {
	o.mu.Lock()
	last, priced := o.last, o.priced
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), priceWithin)
	defer cancel()
	all, err := priced(ctx, last)
	if err != nil { // in time; the other metrics are worth more than an error
		return
	}
	for _, p := range all {
		out <- prometheus.MustNewConstMetric(o.price, prometheus.GaugeValue, p.Price.Dollars(), p.InstanceType, string(p.CapacityType), p.Zone)
	}
}
