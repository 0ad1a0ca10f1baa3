package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
	"github.com/nodeautoprovision/nap/internal/model"
)

// counted is a sample of Karpenter's metrics: what it was before is subtracted, as all
// tests of a process share them.
func counted(t *testing.T, name, label string) func() float64 {
	before := metricstest.Value(t, ctrlmetrics.Registry, name, label)
	return func() float64 { return metricstest.Value(t, ctrlmetrics.Registry, name, label) - before }
}

func TestDecisionWritesKarpentersMetrics(t *testing.T) {
	m, err := NewDisruption(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	approved := counted(t, "karpenter_consolidation_moves_total", "approved")
	rejected := counted(t, "karpenter_consolidation_moves_total", "rejected")
	failed := counted(t, "karpenter_voluntary_disruption_failed_validations_total", "multi")
	scores := metricstest.Observations(t, ctrlmetrics.Registry, "karpenter_consolidation_score", "scored")
	lasted := metricstest.Observations(t, ctrlmetrics.Registry, "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", "drifted")
	m.Decided(&model.DisruptionProblem{
		Usages: []model.NodeUsage{{Policy: 0}, {Policy: 0}, {Policy: -1}},
		Policies: []model.DisruptionPolicy{{
			Pool: "scored", Consolidation: model.Balanced, Budgeted: map[model.DisruptionReason]int{model.DisruptDrifted: 5},
			Consuming: map[model.DisruptionReason]int{model.DisruptDrifted: 3},
		}},
	}, &model.Commands{
		Commands: []model.Command{{Reason: model.DisruptUnderutilized, Nodes: []int{0, 1}}, {Reason: model.DisruptDrifted, Nodes: []int{0}}},
		Scores: []model.BalancedScore{
			{Policy: 0, Nodes: []int{0, 1}, Saving: 0.5, Disruption: 0.25, Approved: true},
			{Policy: 0, Nodes: []int{1}, Saving: 0.1, Disruption: 0.4},
		},
	}, 0, 2*time.Second)
	m.FailedValidation(&Command{Reason: model.DisruptUnderutilized, NodePools: []string{"scored", "scored"}}, 2)
	m.FailedValidation(&Command{Reason: model.DisruptDrifted, NodePools: []string{"scored"}}, 1)
	if a, r, f := approved(), rejected(), failed(); a != 1 || r != 1 || f != 2 {
		t.Errorf("approved %v, rejected %v, failed validations %v; want 1, 1, 2", a, r, f)
	}
	if n := metricstest.Value(t, ctrlmetrics.Registry, "karpenter_nodepools_nodes_consuming_budgets", "scored"); n != 3 {
		t.Errorf("%v nodes consume the budgets, want 3", n)
	}
	if n := metricstest.Observations(t, ctrlmetrics.Registry, "karpenter_consolidation_score", "scored") - scores; n != 2 {
		t.Errorf("%d scores were observed, want 2", n)
	}
	const name = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds"
	if n := metricstest.Observations(t, ctrlmetrics.Registry, name, "drifted") - lasted; n != 1 {
		t.Errorf("%d decisions were measured, want 1", n)
	}
}

func zoneIn(zones ...string) model.Requirements {
	return model.Requirements{{Key: model.LabelZone, Operator: model.In, Values: zones}}
}

func TestEffectiveZoneOfPods(t *testing.T) {
	not := model.Requirements{{Key: model.LabelZone, Operator: model.NotIn, Values: []string{"1"}}}
	for name, c := range map[string]struct {
		class model.PodClass
		want  string
	}{
		"no rule":              {model.PodClass{}, "flexible"},
		"one zone":             {model.PodClass{PodRules: model.PodRules{NodeRequirements: zoneIn("1")}}, "1"},
		"two zones":            {model.PodClass{PodRules: model.PodRules{NodeRequirements: zoneIn("1", "2")}}, "flexible"},
		"all but one":          {model.PodClass{PodRules: model.PodRules{NodeRequirements: not}}, "flexible"},
		"volume alone":         {model.PodClass{VolumeAlternatives: []model.Requirements{zoneIn("2")}}, "2"},
		"volume and selector":  {model.PodClass{PodRules: model.PodRules{NodeRequirements: zoneIn("1", "2")}, VolumeAlternatives: []model.Requirements{zoneIn("2")}}, "2"},
		"volume elsewhere":     {model.PodClass{PodRules: model.PodRules{NodeRequirements: zoneIn("1")}, VolumeAlternatives: []model.Requirements{zoneIn("2")}}, "none"},
		"one term of affinity": {model.PodClass{PodRules: model.PodRules{NodeAlternatives: []model.Requirements{zoneIn("3")}}}, "3"},
		"a term without zones": {model.PodClass{PodRules: model.PodRules{NodeAlternatives: []model.Requirements{zoneIn("3"), {}}}}, "flexible"},
	} {
		if got := effectiveZone(&c.class); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPlanningTellsQueueAndZones(t *testing.T) {
	m, err := NewProvisioning(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	value := func(name, label string) float64 {
		return metricstest.Value(t, ctrlmetrics.Registry, "karpenter_scheduler_"+name, label)
	}
	problem := &model.Problem{Classes: []model.PodClass{
		{Pods: make([]model.PodRef, 3), PodRules: model.PodRules{NodeRequirements: zoneIn("eastus-1")}},
		{Pods: make([]model.PodRef, 2)},
	}}
	done := m.Planning(clock.RealClock{}, "plan-a", problem)
	if depth, in, any := value("queue_depth", "plan-a"), value("pending_pods_by_effective_zone_count", "eastus-1"),
		value("pending_pods_by_effective_zone_count", "flexible"); depth != 5 || in != 3 || any != 2 {
		t.Errorf("while planning: depth %v, %v in the zone, %v anywhere", depth, in, any)
	}
	if n := metricstest.Series(t, ctrlmetrics.Registry, "karpenter_scheduler_unfinished_work_seconds", "plan-a"); n != 1 {
		t.Errorf("%d series of unfinished work while planning", n)
	}
	done(1)
	if depth := value("queue_depth", "plan-a"); depth != 1 {
		t.Errorf("depth %v afterwards, want the pod without a place", depth)
	}
	if n := metricstest.Series(t, ctrlmetrics.Registry, "karpenter_scheduler_unfinished_work_seconds", "plan-a"); n != 0 {
		t.Errorf("%d series of unfinished work after the plan", n)
	}
	m.NothingToPlan()
	if n := metricstest.Series(t, ctrlmetrics.Registry, "karpenter_scheduler_queue_depth", "plan-a") +
		metricstest.Series(t, ctrlmetrics.Registry, "karpenter_scheduler_pending_pods_by_effective_zone_count", "eastus-1"); n != 0 {
		t.Errorf("%d series are left of a plan whose pods have gone", n)
	}
}
