package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/model"
)

// priceEstimates is the metric of what offerings cost by which Karpenter's providers are
// known, for those of the nodes that there are: not for all that Azure sells, which are
// thousands. One goroutine uses it.
type priceEstimates struct {
	gauge *prometheus.GaugeVec
	// told are the series of the last call.
	told map[offeringName]bool
}

// offeringName names an offering as nodes do.
type offeringName struct{ size, capacityType, zone string }

func newPriceEstimates(reg prometheus.Registerer, err *error) *priceEstimates {
	return &priceEstimates{gauge: register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "karpenter_cloudprovider_instance_type_offering_price_estimate",
		Help: "Estimated hourly price of the offerings that nodes are of, as decisions count it, by instance type, capacity type and zone.",
	}, []string{"instance_type", "capacity_type", "zone"}), err)}
}

// set tells the prices of the offerings of nodes, and forgets all others.
func (e *priceEstimates) set(nodes []model.Node) {
	now := map[offeringName]bool{}
	for i := range nodes {
		n := &nodes[i]
		of := offeringName{n.Labels[model.LabelInstanceType], n.Labels[model.LabelCapacityType], n.Labels[model.LabelZone]}
		if n.Price <= 0 || of.size == "" {
			continue
		}
		now[of] = true
		e.gauge.WithLabelValues(of.size, of.capacityType, of.zone).Set(n.Price.Dollars())
	}
	for of := range e.told {
		if !now[of] {
			e.gauge.DeleteLabelValues(of.size, of.capacityType, of.zone)
		}
	}
	e.told = now
}
