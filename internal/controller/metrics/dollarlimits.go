package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// DollarLimits tell the limits of NodePools in dollars per hour, and what is used of them.
// Karpenter's metrics of limits do not have them: they are annotations.
type DollarLimits struct {
	limit, used *prometheus.Desc

	mu     sync.Mutex
	limits func(ctx context.Context) ([]fleet.DollarLimit, error)
}

// NewDollarLimits registers the metrics; limits are asked for when they are read.
func NewDollarLimits(reg prometheus.Registerer, limits func(ctx context.Context) ([]fleet.DollarLimit, error)) error {
	var err error
	d := register(reg, &DollarLimits{
		limit: prometheus.NewDesc("nap_nodepool_limit_dollars_per_hour",
			"The most that the nodes of the NodePool may cost per hour together (karpenter.azure.com/max-hourly-cost).", []string{"nodepool"}, nil),
		used: prometheus.NewDesc("nap_nodepool_used_dollars_per_hour",
			"What counts for the limit of the NodePool in dollars per hour; nodes of which it is unknown are left out.", []string{"nodepool"}, nil),
	}, &err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limits = limits
	return err
}

// Describe implements prometheus.Collector.
func (d *DollarLimits) Describe(descs chan<- *prometheus.Desc) {
	descs <- d.limit
	descs <- d.used
}

// Collect implements prometheus.Collector.
func (d *DollarLimits) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	limits := d.limits
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), priceWithin)
	defer cancel()
	all, err := limits(ctx)
	if err != nil { // in time; the other metrics are worth more than an error
		return
	}
	for _, l := range all {
		out <- prometheus.MustNewConstMetric(d.limit, prometheus.GaugeValue, l.Limit.Dollars(), l.Pool)
		out <- prometheus.MustNewConstMetric(d.used, prometheus.GaugeValue, l.Used.Dollars(), l.Pool)
	}
}
