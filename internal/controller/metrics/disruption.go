package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	karpmetrics "sigs.k8s.io/karpenter/pkg/metrics"
	"sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
	"sigs.k8s.io/karpenter/pkg/utils/pretty"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Disruption are the metrics of the loop that removes and replaces nodes.
type Disruption struct {
	duration  prometheus.Histogram
	saved     prometheus.Counter
	evictions prometheus.Counter
	commands  *prometheus.CounterVec
	rejected  *prometheus.CounterVec
}

// NewDisruption registers the metrics. Two loops in one process share them.
func NewDisruption(reg prometheus.Registerer) (*Disruption, error) {
	m := &Disruption{
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
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_disruption_moves_total",
			Help: "Commands by what became of them: begun, made or taken back; and decisions whose commands saved too little.",
		}, []string{"result"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_disruption_rejected_total", Help: "Commands that were considered and not made, or rolled back, by reason.",
		}, []string{"reason"}),
	}
	var err error
	m.duration = register(reg, m.duration, &err)
	m.saved = register(reg, m.saved, &err)
	m.evictions = register(reg, m.evictions, &err)
	m.commands = register(reg, m.commands, &err)
	m.rejected = register(reg, m.rejected, &err)
	queueFailures()
	return m, err
}

// queueFailures makes Karpenter's counter of commands that were rolled back begin at none: a
// rate of a series that appears with its first failure misses that failure.
func queueFailures() {
	for _, c := range []Command{
		{Reason: model.DisruptEmpty}, {Reason: model.DisruptUnderutilized}, {Reason: model.DisruptUnderutilized, Replacements: 1},
		{Reason: model.DisruptDrifted, Replacements: 1}, {Reason: model.DisruptUnhealthy, Replacements: 1},
	} {
		disruption.DisruptionQueueFailuresTotal.Add(0, c.labels())
	}
}

// Command is what the metrics tell of a disruption command.
type Command struct {
	Reason model.DisruptionReason
	// NodePools are those of the nodes that are removed, one entry a node.
	NodePools []string
	// Replacements is the number of nodes that are launched first.
	Replacements int
	// TerminateFirst says that the node of a static NodePool at its limit goes before its
	// replacement is launched.
	TerminateFirst bool
	// Saving is expected, in dollars per hour; negative when the command costs more.
	Saving float64
	// Evictions is the number of pods that have to move.
	Evictions int
}

// labels are those of Karpenter's metrics of a command.
func (c *Command) labels() map[string]string {
	decision := "delete"
	switch {
	case c.TerminateFirst:
		decision = string(disruption.TerminateFirstDecision)
	case c.Replacements > 0:
		decision = "replace"
	}
	return map[string]string{
		"decision": decision, karpmetrics.ReasonLabel: reasonLabel(c.Reason), disruption.ConsolidationTypeLabel: c.consolidationType(),
	}
}

// consolidationType is Karpenter's word for the kind of consolidation, empty for
// other reasons.
func (c *Command) consolidationType() string {
	switch {
	case c.Reason == model.DisruptEmpty:
		return "empty"
	case c.Reason != model.DisruptUnderutilized:
		return ""
	case len(c.NodePools) > 1:
		return "multi"
	}
	return "single"
}

func reasonLabel(reason model.DisruptionReason) string { return strings.ToLower(string(reason)) }

// Decided measures one decision and how long it took. unconsolidatable is the
// number of nodes that stay because nothing would be saved.
func (m *Disruption) Decided(p *model.DisruptionProblem, commands *model.Commands, unconsolidatable int, took time.Duration) {
	m.duration.Observe(took.Seconds())
	for reason, n := range commands.Rejected {
		m.rejected.WithLabelValues(string(reason)).Add(float64(n))
	}
	eligible := map[model.DisruptionReason]int{
		model.DisruptEmpty: 0, model.DisruptUnderutilized: unconsolidatable, model.DisruptDrifted: 0, model.DisruptUnhealthy: 0,
	}
	for i := range commands.Commands {
		eligible[commands.Commands[i].Reason] += len(commands.Commands[i].Nodes)
	}
	for reason, n := range eligible {
		disruption.EligibleNodes.Set(float64(n), map[string]string{karpmetrics.ReasonLabel: reasonLabel(reason)})
	}
	evaluated(took)
	budgets(p.Policies)
	consolidation(p, commands)
}

// Begun counts a command whose nodes are marked and whose replacements are created.
func (m *Disruption) Begun(c *Command) {
	m.commands.WithLabelValues("begun").Inc()
	disruption.DecisionsPerformedTotal.Inc(c.labels())
	counted := map[string]bool{}
	for _, pool := range c.NodePools {
		if counted[pool] {
			continue
		}
		counted[pool] = true
		labels := c.labels()
		labels[karpmetrics.NodePoolLabel] = pool
		disruption.NodepoolDecisionsPerformed.Inc(labels)
		if c.TerminateFirst {
			disruption.TerminateFirstDecisionsTotal.Inc(map[string]string{
				karpmetrics.NodePoolLabel: pool, karpmetrics.ReasonLabel: reasonLabel(c.Reason),
				disruption.TerminateFirstReasonDim.Name: string(disruption.TerminateFirstStaticAtLimit),
			})
		}
	}
}

// ReplacementCreated counts a NodeClaim that was created for a command.
func (m *Disruption) ReplacementCreated(reason model.DisruptionReason, claim *karpv1.NodeClaim) {
	claimCreated(claim, reasonLabel(reason))
}

// Deleted counts a NodeClaim that a command has deleted, and the pods that have to move.
// Policy is the consolidation policy of its NodePool.
func (m *Disruption) Deleted(reason model.DisruptionReason, claim *karpv1.NodeClaim, policy karpv1.ConsolidationPolicy, pods int) {
	if reason == model.DisruptDrifted || reason == model.DisruptUnhealthy {
		policy = "" // Karpenter names the policy for consolidation alone
	}
	claimDisrupted(claim, reasonLabel(reason), policy, pods)
}

// Repaired counts a NodeClaim that was deleted because its node has a condition. Karpenter
// counts those beside all others that are disrupted.
func (m *Disruption) Repaired(claim *karpv1.NodeClaim, condition string) {
	disruption.NodeClaimsUnhealthyDisruptedTotal.Inc(map[string]string{
		disruption.RepairCondition.Name:  pretty.ToSnakeCase(condition),
		karpmetrics.NodePoolLabel:        claim.Labels[karpv1.NodePoolLabelKey],
		karpmetrics.CapacityTypeLabel:    claim.Labels[karpv1.CapacityTypeLabelKey],
		disruption.ImageID.Name:          claim.Status.ImageID,
		karpmetrics.TerminationModeLabel: nodeclaim.DisruptionTerminationMode(claim),
	})
}

// claimDisrupted counts a deleted NodeClaim, and the pods that have to move, in
// Karpenter's metrics.
func claimDisrupted(claim *karpv1.NodeClaim, reason string, policy karpv1.ConsolidationPolicy, pods int) {
	labels := map[string]string{
		karpmetrics.ReasonLabel:              reason,
		karpmetrics.NodePoolLabel:            claim.Labels[karpv1.NodePoolLabelKey],
		karpmetrics.CapacityTypeLabel:        claim.Labels[karpv1.CapacityTypeLabelKey],
		karpmetrics.ConsolidationPolicyLabel: pretty.ToSnakeCase(string(policy)),
		karpmetrics.TerminationModeLabel:     nodeclaim.DisruptionTerminationMode(claim),
	}
	karpmetrics.NodeClaimsDisruptedTotal.Inc(labels)
	karpmetrics.PodsDisruptionInitiatedTotal.Add(float64(pods), labels)
}

// Succeeded counts a command that has been carried out.
func (m *Disruption) Succeeded(c *Command) {
	m.commands.WithLabelValues("made").Inc()
	m.saved.Add(max(0, c.Saving))
	m.evictions.Add(float64(c.Evictions))
}

// RolledBack counts a command that has been rolled back, and why.
func (m *Disruption) RolledBack(c *Command, cause model.Reason) {
	m.commands.WithLabelValues("taken back").Inc()
	m.rejected.WithLabelValues(string(cause)).Inc()
	disruption.DisruptionQueueFailuresTotal.Inc(c.labels())
}

// SavedTooLittle counts a decision whose commands did not save what was expected.
func (m *Disruption) SavedTooLittle() { m.commands.WithLabelValues("saved too little").Inc() }
