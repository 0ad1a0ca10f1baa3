package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	karpmetrics "sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Provisioning are the metrics of the loop that buys nodes.
type Provisioning struct {
	batches        *prometheus.CounterVec
	duration       prometheus.Histogram
	cost           prometheus.Gauge
	lowerBound     prometheus.Gauge
	rejected       *prometheus.CounterVec
	failed         *prometheus.CounterVec
	again          *prometheus.CounterVec
	paused         *prometheus.GaugeVec
	planningFailed prometheus.Counter
}

// provisioner is the value of Karpenter's controller label.
const provisioner = "provisioner"

// NewProvisioning registers the metrics. Two loops in one process share them.
func NewProvisioning(reg prometheus.Registerer) (*Provisioning, error) {
	m := &Provisioning{
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
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_provision_purchases_failed_total",
			Help: "Purchases for a workload which led to none of its pods running, by NodePool and by whether there was a machine: " +
				OutcomeUnused + " or " + OutcomeNoMachine + ".",
		}, []string{"nodepool", "outcome"}),
		again: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_provision_planned_again_total",
			Help: "NodeClaims that ended without a machine, since nothing was left to buy, or only what cost over 5 percent more, by NodePool.",
		}, []string{"nodepool"}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "nap_provision_purchases_paused",
			Help: "For how many workloads, and with how many AKSNodeClasses, nothing or single machines only are bought, " +
				"since earlier purchases led to nothing.",
		}, []string{"of"}),
		planningFailed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nap_provision_planning_failed_total", Help: "Classes of pods that were left out of plans, since planning them failed.",
		}),
	}
	var err error
	m.batches = register(reg, m.batches, &err)
	m.duration = register(reg, m.duration, &err)
	m.cost = register(reg, m.cost, &err)
	m.lowerBound = register(reg, m.lowerBound, &err)
	m.rejected = register(reg, m.rejected, &err)
	m.failed = register(reg, m.failed, &err)
	m.again = register(reg, m.again, &err)
	m.paused = register(reg, m.paused, &err)
	m.planningFailed = register(reg, m.planningFailed, &err)
	return m, err
}

// BatchClosed counts a batch by what closed it.
func (m *Provisioning) BatchClosed(by string) { m.batches.WithLabelValues(by).Inc() }

// Planned measures a plan and how long the planner took for it.
func (m *Provisioning) Planned(plan *model.Plan, took time.Duration) {
	m.duration.Observe(took.Seconds())
	m.cost.Set(plan.Cost.Dollars())
	m.lowerBound.Set(plan.LowerBound.Dollars())
	scheduling.DurationSeconds.Observe(took.Seconds(), map[string]string{scheduling.ControllerLabel: provisioner})
}

// Unschedulable sets the number of pods without a place in the last plan.
func (m *Provisioning) Unschedulable(pods int) {
	scheduling.UnschedulablePodsCount.Set(float64(pods), map[string]string{scheduling.ControllerLabel: provisioner})
}

// Ignored sets the number of pods that cannot be planned at all.
func (m *Provisioning) Ignored(pods int) { scheduling.IgnoredPodCount.Set(float64(pods), nil) }

// Rejected counts a planned NodeClaim that no longer held when it was to be created.
func (m *Provisioning) Rejected(reason string) { m.rejected.WithLabelValues(reason).Inc() }

// PlanningFailed counts a class of pods on which the planner failed.
func (m *Provisioning) PlanningFailed() { m.planningFailed.Inc() }

// The outcomes of purchases that failed.
const (
	OutcomeUnused    = "unused"
	OutcomeNoMachine = "no_machine"
)

// PurchaseFailed counts a purchase for a workload after which none of its pods runs;
// launched is whether there was a machine.
func (m *Provisioning) PurchaseFailed(nodePool string, launched bool) {
	outcome := OutcomeNoMachine
	if launched {
		outcome = OutcomeUnused
	}
	m.failed.WithLabelValues(nodePool, outcome).Inc()
}

// PlannedAgain counts a NodeClaim that ended since nothing was left to buy, or only what
// was too dear.
func (m *Provisioning) PlannedAgain(nodePool string) { m.again.WithLabelValues(nodePool).Inc() }

// Paused sets for how many workloads, and with how many AKSNodeClasses, purchases pause.
func (m *Provisioning) Paused(workloads, classes int) {
	m.paused.WithLabelValues("workloads").Set(float64(workloads))
	m.paused.WithLabelValues("classes").Set(float64(classes))
}

// Created counts a NodeClaim that was created for pods.
func (m *Provisioning) Created(claim *karpv1.NodeClaim) {
	claimCreated(claim, karpmetrics.ProvisionedReason)
}

// claimCreated counts a created NodeClaim in Karpenter's metric.
func claimCreated(claim *karpv1.NodeClaim, reason string) {
	relaxed := "false"
	if claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] == "true" {
		relaxed = "true"
	}
	karpmetrics.NodeClaimsCreatedTotal.Inc(map[string]string{
		karpmetrics.ReasonLabel:           reason,
		karpmetrics.NodePoolLabel:         claim.Labels[karpv1.NodePoolLabelKey],
		karpmetrics.MinValuesRelaxedLabel: relaxed,
	})
}
