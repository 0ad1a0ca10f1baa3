package consolidate_test

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// Consolidation moves no pod to a node that has its share of the pod's workload already.
func TestConsolidationKeepsSharesOfNodes(t *testing.T) {
	for _, most := range []int32{1, 2} {
		p := nearTie(0)
		class := &p.Classes[1]
		class.Pods = append(class.Pods, model.PodRef{Namespace: "default", Name: "cache-1"})
		class.Requests = model.Resources{1000, 4 * gi, 0, 1}
		class.Labels = map[string]string{model.LabelWorkload: "cache"}
		class.Spread = []model.SpreadConstraint{{
			TopologyKey: model.LabelHostname, MaxSkew: most, Share: true, Hard: true, Selector: &model.Selector{
				Requirements: model.Requirements{{Key: model.LabelWorkload, Operator: model.In, Values: []string{"cache"}}},
			},
		}}
		on := func(pod int) model.NewNode { // a pod on a d8, which would hold both
			return model.NewNode{Offerings: []model.OfferingRef{{Price: model.USD(0.42)}}, Pods: []model.ClassPods{{Class: 1, Pods: []int{pod}}}}
		}
		f := bought(p, &model.Plan{NewNodes: []model.NewNode{on(0), on(1)}})
		f.Terms = model.ConsolidationTerms{Payback: time.Hour}
		moves := consolidate.Plan(f)
		for _, v := range verify.CheckMoves(f, moves) {
			t.Error(v)
		}
		nodes := len(f.Problem.Nodes)
		for _, c := range moves.Commands {
			nodes += len(c.New) - len(c.Nodes)
		}
		if want := 3 - int(most); nodes != want {
			t.Errorf("at most %d pods on a node: %d nodes are left, expected %d", most, nodes, want)
		}
	}
}
