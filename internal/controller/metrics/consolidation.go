package metrics

import (
	"time"

	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	karpmetrics "sigs.k8s.io/karpenter/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The labels of Karpenter's metrics of consolidation whose keys it does not export.
const (
	decisionLabel = "decision"
	policyLabel   = "policy"
)

// consolidationTypes are Karpenter's words for the ways in which it looks for nodes to
// remove, by reason.
func consolidationTypes() map[model.DisruptionReason]string {
	return map[model.DisruptionReason]string{
		model.DisruptEmpty:         disruption.EmptyConsolidationType.Name,
		model.DisruptUnderutilized: disruption.MultiNodeConsolidationType.Name,
		model.DisruptDrifted:       "",
		model.DisruptUnhealthy:     "",
	}
}

// evaluated measures one decision in Karpenter's metric. Karpenter decides for each
// reason by itself; nap's one decision is for all of them, so each is told its whole time.
func evaluated(took time.Duration) {
	for reason, kind := range consolidationTypes() {
		disruption.EvaluationDurationSeconds.Observe(took.Seconds(), map[string]string{
			karpmetrics.ReasonLabel: reasonLabel(reason), disruption.ConsolidationTypeLabel: kind,
		})
	}
}

// budgets sets what the budgets of NodePools allow, and what counts against them.
func budgets(policies []model.DisruptionPolicy) {
	for i := range policies {
		for reason, n := range policies[i].Budgeted {
			labels := map[string]string{karpmetrics.NodePoolLabel: policies[i].Pool, karpmetrics.ReasonLabel: reasonLabel(reason)}
			disruption.NodePoolAllowedDisruptions.Set(float64(n), labels)
			disruption.NodePoolNodesConsumingBudgets.Set(float64(policies[i].Consuming[reason]), labels)
		}
	}
}

// consolidation counts the moves that a decision found, by NodePool, and observes what
// the policy Balanced says of them.
func consolidation(p *model.DisruptionProblem, commands *model.Commands) {
	for i := range commands.Commands {
		c := &commands.Commands[i]
		if c.Reason != model.DisruptUnderutilized {
			continue
		}
		counted := map[int]bool{}
		for _, n := range c.Nodes {
			if policy := p.Usages[n].Policy; policy >= 0 && !counted[policy] {
				counted[policy] = true
				disruption.ConsolidationMovesTotal.Inc(moveLabels(&p.Policies[policy], true))
			}
		}
	}
	for i := range commands.Scores {
		s := &commands.Scores[i]
		labels := moveLabels(&p.Policies[s.Policy], s.Approved)
		disruption.ConsolidationScoreHistogram.Observe(s.Score(), labels)
		if !s.Approved {
			disruption.ConsolidationMovesTotal.Inc(labels)
		}
	}
}

func moveLabels(of *model.DisruptionPolicy, approved bool) map[string]string {
	decision := disruption.RejectedDecision
	if approved {
		decision = disruption.ApprovedDecision
	}
	return map[string]string{
		decisionLabel: string(decision), karpmetrics.NodePoolLabel: of.Pool, policyLabel: string(of.Consolidation),
	}
}

// FailedValidation counts nodes of a command of consolidation which must not be removed
// after all, as a second look has shown.
func (m *Disruption) FailedValidation(c *Command, nodes int) {
	kind := c.consolidationType()
	if kind == "" {
		return
	}
	disruption.FailedValidationsTotal.Add(float64(nodes), map[string]string{disruption.ConsolidationTypeLabel: kind})
}
