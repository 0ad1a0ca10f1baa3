package portfolio

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

func TestStrategiesFollowProblem(t *testing.T) {
	class := func(priority int32) model.PodClass {
		c := model.PodClass{Requests: model.Resources{100, 100, 0, 1}, Pods: make([]model.PodRef, 10)}
		c.Priority = priority
		return c
	}
	preferring := class(0)
	preferring.NodePreferences = []model.NodePreference{{Weight: 1, Requirements: model.Requirements{{Key: "a", Operator: model.Exists}}}}
	node := model.Node{Name: "n", State: model.NodeReady, Allocatable: model.Resources{1000, 1000, 0, 10}}
	for _, c := range []struct {
		name     string
		classes  []model.PodClass
		nodes    []model.Node
		unplaced int
		mostPods int
		count    int
		has      construct.Strategy
	}{
		{"nothing to choose", []model.PodClass{class(0)}, nil, 0, 300, 0, construct.Strategy{}},
		{"something ran out", []model.PodClass{class(0)}, nil, 5, 300, 2, construct.Strategy{Sequential: true, ScarcityFirst: true}},
		{"nodes", []model.PodClass{class(0)}, []model.Node{node}, 0, 300, 9, construct.Strategy{FewestNodes: true}},
		{"priorities", []model.PodClass{class(0), class(1)}, nil, 0, 300, 8, construct.Strategy{IgnorePriority: true}},
		{"preferences and pods that wait", []model.PodClass{preferring}, nil, 5, 300, 9, construct.Strategy{HardOnly: true}},
		{"preferences alone", []model.PodClass{preferring}, nil, 0, 300, 0, construct.Strategy{}},
		{"too many pods", []model.PodClass{class(0)}, []model.Node{node}, 0, 9, 0, construct.Strategy{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := instance.New(feasible.New(&model.Problem{Axes: model.NewAxes(), Classes: c.classes, Nodes: c.nodes}, nil))
			nodes, _ := placement.Existing(in.Space)
			plan := construct.New(in, nodes, placement.Decision{}, construct.Params{})
			got := Standard().worthTrying(plan, nodechoice.Result{Unplaced: c.unplaced}, c.mostPods)
			if len(got) != c.count || c.count > 0 && !slices.Contains(got, c.has) {
				t.Errorf("got %d strategies %+v, want %d with %+v", len(got), got, c.count, c.has)
			}
		})
	}
}
