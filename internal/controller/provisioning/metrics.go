package provisioning

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpmetrics "sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Metrics are the loop's own numbers. Where Karpenter has a metric for the same
// thing, that one is written too, so that dashboards keep working.
type Metrics struct {
	batches    *prometheus.CounterVec
	duration   prometheus.Histogram
	cost       prometheus.Gauge
	lowerBound prometheus.Gauge
	rejected   *prometheus.CounterVec
}

// controllerName is the value of Karpenter's controller label.
const controllerName = "provisioner"

// NewMetrics registers the metrics. Two loops in one process share them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_provision_batches_total", Help: "Batches of pending pods, by what closed them: complete, idle or max.",
		}, []string{"close"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nap_provision_plan_duration_seconds", Help: "Time that the planner took for one plan.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		cost: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nap_provision_plan_cost_dollars_per_hour", Help: "Price of the machines that the last plan buys.",
		}),
		lowerBound: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nap_provision_plan_lower_bound_dollars_per_hour", Help: "Proven least price for what the last plan buys.",
		}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_provision_rejected_total", Help: "Planned NodeClaims that no longer held when they were to be created, by reason.",
		}, []string{"reason"}),
	}
	var err error
	m.batches = Register(reg, m.batches, &err)
	m.duration = Register(reg, m.duration, &err)
	m.cost = Register(reg, m.cost, &err)
	m.lowerBound = Register(reg, m.lowerBound, &err)
	m.rejected = Register(reg, m.rejected, &err)
	return m, err
}

// Register registers a collector and returns it, or the one that is registered
// under its name already. An error is added to failed.
func Register[C prometheus.Collector](reg prometheus.Registerer, c C, failed *error) C {
	err := reg.Register(c)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if existing, ok := known.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		*failed = errors.Join(*failed, fmt.Errorf("registering a metric: %w", err))
	}
	return c
}

func (m *Metrics) planned(plan *model.Plan, took time.Duration) {
	m.duration.Observe(took.Seconds())
	m.cost.Set(plan.Cost.Dollars())
	m.lowerBound.Set(plan.LowerBound.Dollars())
	scheduling.DurationSeconds.Observe(took.Seconds(), map[string]string{scheduling.ControllerLabel: controllerName})
	m.unschedulable(unschedulablePods(plan))
}

func (m *Metrics) unschedulable(pods int) {
	scheduling.UnschedulablePodsCount.Set(float64(pods), map[string]string{scheduling.ControllerLabel: controllerName})
}

func (m *Metrics) ignored(pods int) { scheduling.IgnoredPodCount.Set(float64(pods), nil) }

func (m *Metrics) created(d *draft) {
	karpmetrics.NodeClaimsCreatedTotal.Inc(map[string]string{
		karpmetrics.ReasonLabel:           karpmetrics.ProvisionedReason,
		karpmetrics.NodePoolLabel:         d.pool,
		karpmetrics.MinValuesRelaxedLabel: "false",
	})
}
