package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The eviction of a DaemonSet pod counts as that of a pod which moves, unless the drain ends
// by force.
func TestCheckMovesCountsEvictionsOfDaemonPods(t *testing.T) {
	for name, c := range map[string]struct {
		reason model.DisruptionReason
		budget model.PodBudget
		of     []int
		grace  bool
		want   string
	}{
		"allowed one after the other": {model.DisruptEmpty, model.PodBudget{Allowed: 2}, []int{0}, false, ""},
		"used up by both":             {model.DisruptEmpty, model.PodBudget{Allowed: 1}, []int{0}, false, "2 evictions from 2 nodes, allowed are 1"},
		"allows nothing":              {model.DisruptEmpty, model.PodBudget{}, []int{0}, false, "which allows nothing"},
		"never allows anything":       {model.DisruptEmpty, model.PodBudget{Allowed: 2, Blocking: true}, []int{0}, false, "which allows nothing"},
		"owed by nodes that go":       {model.DisruptEmpty, model.PodBudget{Allowed: 3, Owed: 2}, []int{0}, false, "allowed are 3, of which nodes that go already take 2"},
		"enough beside what is owed":  {model.DisruptEmpty, model.PodBudget{Allowed: 3, Owed: 1}, []int{0}, false, ""},
		"two budgets":                 {model.DisruptEmpty, model.PodBudget{Allowed: 2}, []int{0, 1}, false, "a pod of 2 PodDisruptionBudgets"},
		"drift that ends by force":    {model.DisruptDrifted, model.PodBudget{}, []int{0}, true, ""},
		"drift that does not":         {model.DisruptDrifted, model.PodBudget{}, []int{0}, false, "which allows nothing"},
	} {
		f := &model.DisruptionProblem{
			Problem:  &model.Problem{Axes: model.NewAxes()},
			Budgets:  []model.PodBudget{c.budget, {Allowed: 2}},
			Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmpty}},
		}
		moves := &model.Commands{Before: 20, After: 0}
		for n, node := range []string{"a", "b"} {
			f.Problem.Nodes = append(f.Problem.Nodes, model.Node{Name: node, Pool: "general", State: model.NodeReady, Price: 10})
			f.Usages = append(f.Usages, model.NodeUsage{
				Initialized: true, Ready: true, GracePeriod: c.grace, Drift: "NodePoolDrifted",
				DaemonPods: []model.DaemonPod{{Pod: model.PodRef{Namespace: "default", Name: "daemon"}, Budgets: c.of}},
			})
			moves.Commands = append(moves.Commands, model.Command{Reason: c.reason, Nodes: []int{n}, Saving: 10, DisruptionCost: 1})
		}
		found := CheckMoves(f, moves)
		if c.want == "" {
			for _, v := range found {
				t.Errorf("%s: %s", name, v)
			}
			continue
		}
		if !slices.ContainsFunc(found, func(v Violation) bool { return strings.Contains(v.String(), c.want) }) {
			t.Errorf("%s: found %v, want %q", name, found, c.want)
		}
	}
}

// A node whose kubelet does not report may go when it has no pods, or because it has drifted.
func TestCheckMovesOfNodesThatDoNotReport(t *testing.T) {
	for name, c := range map[string]struct {
		reason model.DisruptionReason
		pods   int
		want   string
	}{
		"empty":                                 {model.DisruptEmpty, 0, ""},
		"drifted":                               {model.DisruptDrifted, 1, ""},
		"empty but for pods which cost nothing": {model.DisruptEmpty, 1, "a is consolidated with 1 pods"},
		"underutilized":                         {model.DisruptUnderutilized, 1, "a is consolidated with 1 pods"},
	} {
		ref := model.PodRef{Namespace: "default", Name: "web"}
		f := &model.DisruptionProblem{
			Problem:  &model.Problem{Axes: model.NewAxes()},
			Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized}},
			Usages:   []model.NodeUsage{{Initialized: true, Drift: "NodePoolDrifted"}},
		}
		f.Problem.Nodes = []model.Node{{Name: "a", Pool: "general", State: model.NodeReady, Price: 10}}
		if c.pods > 0 {
			f.Movable = []model.MovableClass{{PodClass: model.PodClass{Owner: "web", Pods: []model.PodRef{ref}}}}
			f.Usages[0].Pods = []model.ClassPods{{Class: 0, Pods: []int{0}}}
		}
		moves := &model.Commands{Before: 10, Commands: []model.Command{{Reason: c.reason, Nodes: []int{0}, Saving: 10, DisruptionCost: 1}}}
		found := slices.DeleteFunc(CheckMoves(f, moves), func(v Violation) bool { return v.Rule != "ready" })
		if c.want == "" && len(found) == 0 || c.want != "" && len(found) == 1 && strings.Contains(found[0].String(), c.want) {
			continue
		}
		t.Errorf("%s: found %v, want %q", name, found, c.want)
	}
}

// A spot node gives way to an on-demand one where its NodePool or pods refuse spot, or the
// machine is paid for in advance.
func TestCheckMovesOfSpotToOnDemand(t *testing.T) {
	const wrong = "spot nodes are replaced by an on-demand node"
	no := model.Requirements{{Key: model.LabelCapacityType, Operator: model.NotIn, Values: []string{string(model.Spot)}}}
	for name, c := range map[string]struct {
		pool, pods model.Requirements
		beyond     model.Money
		want       bool
	}{
		"spot is allowed":         {want: true},
		"the NodePool refuses it": {pool: no},
		"the pods refuse it":      {pods: no},
		"paid for in advance":     {beyond: 30},
	} {
		f := &model.DisruptionProblem{
			Problem: &model.Problem{
				Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: -1, Requirements: c.pool}},
				Nodes: []model.Node{{Name: "a", Pool: "general", State: model.NodeReady, Price: 20,
					Labels: map[string]string{model.LabelCapacityType: string(model.Spot)}}},
				Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
					Name: "d4", Capacity: model.Resources{4000, 1 << 34, 0, 110}, Offerings: []model.Offering{
						{Zone: "z1", CapacityType: model.OnDemand, Price: 10, Uncovered: c.beyond, Available: true},
						{Zone: "z1", CapacityType: model.Spot, Price: 15},
					},
				}}}},
			},
			Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized}},
			Usages:   []model.NodeUsage{{Initialized: true, Ready: true, Pods: []model.ClassPods{{Class: 0, Pods: []int{0}}}}},
		}
		class := model.MovableClass{PodClass: model.PodClass{Pods: []model.PodRef{{Namespace: "default", Name: "web"}}}, EvictionCost: 1}
		class.NodeRequirements = c.pods
		f.Movable = []model.MovableClass{class}
		moves := &model.Commands{Before: 20, After: 10, Commands: []model.Command{{
			Reason: model.DisruptUnderutilized, Nodes: []int{0}, Saving: 10, Evictions: 1, DisruptionCost: 2,
			New: []model.NewNode{{Offerings: []model.OfferingRef{{Price: 10}}, Pods: []model.ClassPods{{Class: 0, Pods: []int{0}}}}},
		}}}
		found := CheckMoves(f, moves)
		if got := slices.ContainsFunc(found, func(v Violation) bool { return strings.Contains(v.String(), wrong) }); got != c.want {
			t.Errorf("%s: found %v, want the fault: %v", name, found, c.want)
		}
	}
}

// A command may buy with what it gives back of limits itself and with what they left before, but
// not with what another one gives back.
func TestCheckMovesKeepsCommandsToTheirOwnLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limit, cpu int64 // cpu of the node that is replaced; the other one has 4000
		nodes      int
		want       string
	}{
		"its own":               {8000, 4000, 2, ""},
		"what was left":         {8000, 2000, 2, ""},
		"of another one":        {7000, 2000, 2, "axis 0 would reach 8000 of 7000"},
		"above the limit":       {3000, 4000, 1, ""},
		"a larger one above it": {3000, 2000, 2, "axis 0 would reach 5000 of 3000"},
		"closed":                {0, 4000, 1, "axis 0 would reach 4000 of 0"},
	} {
		capacity := func(cpu int64) model.Resources { return model.Resources{cpu, 1 << 34, 0, 110} }
		f := &model.DisruptionProblem{
			Problem: &model.Problem{
				Axes: model.NewAxes(),
				Pools: []model.Pool{{
					Name: "general", NodeLimit: 2, Nodes: c.nodes, Limits: []model.Limit{{Axis: model.CPU, Value: c.limit}},
					Usage: capacity(c.cpu + int64(c.nodes-1)*4000),
				}},
				Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{{
					Name: "d4", Capacity: capacity(4000), Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: 10, Available: true}},
				}}}},
			},
			Policies: []model.DisruptionPolicy{{Pool: "general"}},
			Movable: []model.MovableClass{{
				PodClass: model.PodClass{Pods: []model.PodRef{{Namespace: "default", Name: "web"}}}, EvictionCost: 1,
			}},
		}
		moves := &model.Commands{}
		for n, cpu := range []int64{4000, c.cpu}[2-c.nodes:] {
			f.Problem.Nodes = append(f.Problem.Nodes, model.Node{Name: []string{"a", "b"}[n], Pool: "general", State: model.NodeReady, Price: 10})
			f.Usages = append(f.Usages, model.NodeUsage{Initialized: true, Ready: true, Drift: "NodePoolDrifted", Held: capacity(cpu)})
			moves.Commands = append(moves.Commands, model.Command{Reason: model.DisruptDrifted, Nodes: []int{n}, Saving: 10, DisruptionCost: 1})
		}
		last := len(moves.Commands) - 1
		f.Usages[last].Pods = []model.ClassPods{{Class: 0, Pods: []int{0}}}
		moves.Commands[last].New = []model.NewNode{{Offerings: []model.OfferingRef{{Price: 10}}, Pods: []model.ClassPods{{Class: 0, Pods: []int{0}}}}}
		found := slices.DeleteFunc(CheckMoves(f, moves), func(v Violation) bool { return v.Rule != "limits" })
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), c.want)) {
			t.Errorf("%s: found %v, want %q", name, found, c.want)
		}
	}
}
