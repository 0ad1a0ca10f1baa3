package metrics

import "github.com/prometheus/client_golang/prometheus"

// Purchases count what machines were to cost and cost.
type Purchases struct {
	planned, paid *prometheus.CounterVec
}

// NewPurchases registers the metrics.
func NewPurchases(reg prometheus.Registerer) (*Purchases, error) {
	var err error
	labels := []string{"nodepool"}
	p := &Purchases{
		planned: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_purchases_planned_dollars_per_hour_total",
			Help: "What machines that were bought were to cost per hour by their plans, added up, by NodePool.",
		}, labels), &err),
		paid: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_purchases_paid_dollars_per_hour_total",
			Help: "What the same machines cost per hour by the offerings that were bought in the end, added up, by NodePool.",
		}, labels), &err),
	}
	return p, err
}

// Bought counts a machine; both prices are in dollars per hour.
func (p *Purchases) Bought(nodePool string, planned, paid float64) {
	p.planned.WithLabelValues(nodePool).Add(planned)
	p.paid.WithLabelValues(nodePool).Add(paid)
}
