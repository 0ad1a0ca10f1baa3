package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
)

// merger makes one list of the commands of parts. Parts may share the disruption budgets of a
// NodePool.
type merger struct {
	problem *model.DisruptionProblem
	// removed has the nodes removed so far, by policy and whatever the reason.
	removed []int
}

func newMerger(f *model.DisruptionProblem) *merger { return &merger{f, make([]int, len(f.Policies))} }

// Before orders commands of different parts as a plan of the whole orders its own: forced
// ones, then empty nodes, then what saves most for its disruption.
func (m *merger) Before(a, b *model.Command) bool {
	if x, y := turn(a.Reason), turn(b.Reason); x != y {
		return x < y
	}
	return float64(a.Saving)*(b.DisruptionCost+0.01) > float64(b.Saving)*(a.DisruptionCost+0.01)
}

// turn is when commands of a reason are made.
func turn(r model.DisruptionReason) int {
	return slices.Index([]model.DisruptionReason{
		model.DisruptUnhealthy, model.DisruptExpired, model.DisruptDrifted, model.DisruptEmpty, model.DisruptUnderutilized,
	}, r)
}

// Admit counts the nodes of a command, unless the budgets of their NodePools have no room for
// all of them. It then says so of each.
func (m *merger) Admit(c *model.Command) []model.KeptNode {
	before := slices.Clone(m.removed)
	for _, n := range c.Nodes {
		policy := m.problem.Usages[n].Policy
		if reason, full := m.full(n, c.Reason); full {
			m.removed = before
			return m.kept(c, policy, reason)
		}
		if policy >= 0 {
			m.removed[policy]++
		}
	}
	return nil
}

// full says for which reason the budgets of a node's NodePool have no room for it. A node that
// is removed as empty or underutilized needs room for either reason that it could be removed
// for, as for state.Budgets.
func (m *merger) full(n int, reason model.DisruptionReason) (model.DisruptionReason, bool) {
	usage := &m.problem.Usages[n]
	if usage.Policy < 0 {
		return "", false
	}
	reasons := []model.DisruptionReason{reason}
	if reason == model.DisruptEmpty || reason == model.DisruptUnderutilized {
		reasons = nil
		pods, costly := 0, false
		for _, cp := range usage.Pods {
			pods += len(cp.Pods)
			costly = costly || len(cp.Pods) > 0 && m.problem.Movable[cp.Class].EvictionCost > 0
		}
		if !costly {
			reasons = append(reasons, model.DisruptEmpty)
		}
		if pods > 0 {
			reasons = append(reasons, model.DisruptUnderutilized)
		}
	}
	for _, r := range reasons {
		if allowed, limited := m.problem.Policies[usage.Policy].Allowed[r]; limited && m.removed[usage.Policy] >= allowed {
			return r, true
		}
	}
	return "", false
}

// kept says of each node of a command that it stays, since the budgets of a policy are used up
// for a reason.
func (m *merger) kept(c *model.Command, policy int, reason model.DisruptionReason) []model.KeptNode {
	var out []model.KeptNode
	for _, n := range c.Nodes {
		out = append(out, *compiled.KeepByBudget(m.problem, n, policy, reason, m.removed[policy]))
	}
	return out
}
