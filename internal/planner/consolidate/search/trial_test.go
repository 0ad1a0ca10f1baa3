package search

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// twoNodes has an empty spot node 0 and an empty on-demand node 1 that is held.
func twoNodes() *Evaluator {
	const gi = 1 << 30
	size := model.InstanceType{Name: "d4", Capacity: model.Resources{4000, 16 * gi, 0, 20}, Offerings: []model.Offering{
		{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.2), Available: true},
		{Zone: "z1", CapacityType: model.Spot, Price: model.USD(0.05), Available: true},
	}}
	node := func(name string, c model.CapacityType) model.Node {
		return model.Node{
			Name: name, Pool: "general", State: model.NodeReady, Price: model.USD(0.2), Allocatable: model.Resources{4000, 16 * gi, 0, 20},
			Labels: map[string]string{model.LabelCapacityType: string(c), model.LabelZone: "z1"},
		}
	}
	long := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	free := model.NodeUsage{Initialized: true, Ready: true, Created: long, InitializedAt: long, LastPodEvent: long}
	held := free
	held.DoNotDisrupt = true
	p := compiled.Compile(&model.DisruptionProblem{
		Now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		Problem: &model.Problem{
			Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size}}},
			Pools: []model.Pool{{Name: "general", NodeLimit: -1}}, Nodes: []model.Node{node("a", model.Spot), node("b", model.OnDemand)},
		},
		Usages:   []model.NodeUsage{free, held},
		Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized}},
	}, nil)
	return NewEvaluator(state.New(p, eligibility.New(p)))
}

// TestClearDecidesAboutSpotForItsOwnBins: what an earlier trial decided never holds for the
// next one, not even for one whose bins may not be removed.
func TestClearDecidesAboutSpotForItsOwnBins(t *testing.T) {
	e := twoNodes()
	start := e.State.Mark()
	if !e.Clear(&Trial{Remove: []int32{0}}) || !e.Buyer.NoSpot {
		t.Fatalf("the spot node is not removed, or spot may replace it: NoSpot %t", e.Buyer.NoSpot)
	}
	e.State.Undo(start)
	if e.Clear(&Trial{Remove: []int32{1}}) {
		t.Fatal("a node that is held was removed")
	}
	if e.Buyer.NoSpot {
		t.Error("spot is kept out for an on-demand node because a spot node was tried before")
	}
	if e.Buyer.Replace([]int32{0, 1}); e.Buyer.NoSpot {
		t.Error("spot is kept out for a spot node together with an on-demand one")
	}
}
