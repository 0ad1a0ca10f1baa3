package disruption

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	karpmetrics "sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Metrics are the loop's own numbers. Where Karpenter has a metric for the same
// thing, that one is written too, so that dashboards keep working.
type Metrics struct {
	duration  prometheus.Histogram
	saved     prometheus.Counter
	evictions prometheus.Counter
	moves     *prometheus.CounterVec
	rejected  *prometheus.CounterVec
}

// NewMetrics registers the metrics. Two loops in one process share them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nap_disruption_decision_duration_seconds", Help: "Time that one decision about the whole fleet took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		saved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nap_disruption_saved_dollars_per_hour_total", Help: "Price per hour by which moves have made the fleet cheaper.",
		}),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "nap_disruption_evictions_total", Help: "Pods that moves have evicted.",
		}),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_disruption_moves_total", Help: "Moves by what became of them: begun, made or taken back; and decisions whose moves saved too little.",
		}, []string{"result"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_disruption_rejected_total", Help: "Moves that were considered and not made, or taken back, by reason.",
		}, []string{"reason"}),
	}
	var err error
	m.duration = provisioning.Register(reg, m.duration, &err)
	m.saved = provisioning.Register(reg, m.saved, &err)
	m.evictions = provisioning.Register(reg, m.evictions, &err)
	m.moves = provisioning.Register(reg, m.moves, &err)
	m.rejected = provisioning.Register(reg, m.rejected, &err)
	return m, err
}

func lower(reason model.DisruptionReason) string { return strings.ToLower(string(reason)) }

// decided counts one decision.
func (m *Metrics) decided(f *model.DisruptionProblem, moves *model.Commands, took time.Duration) {
	m.duration.Observe(took.Seconds())
	for reason, n := range moves.Rejected {
		m.rejected.WithLabelValues(string(reason)).Add(float64(n))
	}
	eligible := map[model.DisruptionReason]int{model.DisruptEmpty: 0, model.DisruptUnderutilized: 0, model.DisruptDrifted: 0}
	for i := range moves.Commands {
		eligible[moves.Commands[i].Reason] += len(moves.Commands[i].Nodes)
	}
	for i := range moves.Kept {
		if kindOf(moves.Kept[i].Reason) == unconsolidatable {
			eligible[model.DisruptUnderutilized]++
		}
	}
	for reason, n := range eligible {
		disruption.EligibleNodes.Set(float64(n), map[string]string{karpmetrics.ReasonLabel: lower(reason)})
	}
	for i := range f.Policies {
		for reason, n := range f.Policies[i].Allowed {
			disruption.NodePoolAllowedDisruptions.Set(float64(n), map[string]string{
				karpmetrics.NodePoolLabel: f.Policies[i].Pool, karpmetrics.ReasonLabel: lower(reason),
			})
		}
	}
}

// begun counts a move whose nodes are marked and whose replacements are ordered.
func (m *Metrics) begun(mv *move) {
	m.moves.WithLabelValues("begun").Inc()
	disruption.DecisionsPerformedTotal.Inc(m.labels(mv))
	pools := map[string]bool{}
	for _, r := range mv.Remove {
		if !pools[r.Pool] {
			pools[r.Pool] = true
			labels := m.labels(mv)
			labels[karpmetrics.NodePoolLabel] = r.Pool
			disruption.NodepoolDecisionsPerformed.Inc(labels)
		}
	}
}

func (m *Metrics) labels(mv *move) map[string]string {
	return map[string]string{
		"decision": mv.decision(), karpmetrics.ReasonLabel: lower(mv.Reason), disruption.ConsolidationTypeLabel: mv.scope(),
	}
}

func (m *Metrics) deleted(mv *move, claim *karpv1.NodeClaim) {
	karpmetrics.NodeClaimsDisruptedTotal.Inc(map[string]string{
		karpmetrics.ReasonLabel: lower(mv.Reason), karpmetrics.NodePoolLabel: claim.Labels[karpv1.NodePoolLabelKey],
		karpmetrics.CapacityTypeLabel: claim.Labels[karpv1.CapacityTypeLabelKey],
	})
}

func (m *Metrics) made(mv *move) {
	m.moves.WithLabelValues("made").Inc()
	m.saved.Add(max(0, mv.Saving))
	m.evictions.Add(float64(mv.Evictions))
}

// broken counts a decision whose moves did not save what they promised.
func (m *Metrics) broken() { m.moves.WithLabelValues("saved too little").Inc() }

func (m *Metrics) failed(mv *move) {
	m.moves.WithLabelValues("taken back").Inc()
	m.rejected.WithLabelValues(string(mv.cause)).Inc()
	disruption.DisruptionQueueFailuresTotal.Inc(m.labels(mv))
}
