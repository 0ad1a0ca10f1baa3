package consolidate

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Commands of parts that share a NodePool are made until its budgets are used up for their reason.
func TestMergedCommandsKeepBudgetsOfNodePools(t *testing.T) {
	f := &model.DisruptionProblem{
		Problem: &model.Problem{Nodes: make([]model.Node, 7)},
		Policies: []model.DisruptionPolicy{
			{Pool: "all", Allowed: map[model.DisruptionReason]int{model.DisruptUnderutilized: 2, model.DisruptEmpty: 3, model.DisruptDrifted: 1}},
			{Pool: "open"},
		},
		Movable: []model.MovableClass{{EvictionCost: 1}},
		Usages:  make([]model.NodeUsage, 7),
	}
	for n := range 4 { // the others are empty
		f.Usages[n].Pods = []model.ClassPods{{Class: 0, Pods: []int{n}}}
	}
	f.Usages[6].Policy = 1
	m := newMerger(f)
	for _, c := range []struct {
		reason model.DisruptionReason
		nodes  []int
		kept   int
	}{
		{model.DisruptUnderutilized, []int{0}, 0},
		{model.DisruptDrifted, []int{4}, 1},
		{model.DisruptUnderutilized, []int{1, 2}, 2}, // one of them would be within
		{model.DisruptUnderutilized, []int{1, 6}, 0},
		{model.DisruptUnderutilized, []int{3}, 1},
		{model.DisruptEmpty, []int{4}, 0},
		{model.DisruptEmpty, []int{5}, 1},
		{model.DisruptUnderutilized, []int{6}, 0}, // of a NodePool without budgets
	} {
		kept := m.Admit(&model.Command{Reason: c.reason, Nodes: c.nodes})
		if len(kept) != c.kept {
			t.Errorf("%s, nodes %v: %d stay, want %d", c.reason, c.nodes, len(kept), c.kept)
		}
		for i, k := range kept {
			if k.Node != c.nodes[i] || k.Reason != model.ReasonPoolBudget {
				t.Errorf("%s, nodes %v: %+v", c.reason, c.nodes, k)
			}
		}
	}
}
