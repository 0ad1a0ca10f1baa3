package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nodeautoprovision/nap/internal/model"
)

// The metric is Karpenter's: the reason in lower case, and what budgets allow before the
// nodes that are in disruption are subtracted.
func TestAllowedDisruptionsAreKarpenters(t *testing.T) {
	m, err := NewDisruption(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	m.Decided(&model.DisruptionProblem{Policies: []model.DisruptionPolicy{{
		Pool:     "budgeted",
		Allowed:  map[model.DisruptionReason]int{model.DisruptUnderutilized: 1},
		Budgeted: map[model.DisruptionReason]int{model.DisruptUnderutilized: 4},
	}}}, &model.Commands{}, 0, time.Second)
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "karpenter_nodepools_allowed_disruptions" {
			continue
		}
		for _, series := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range series.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["nodepool"] == "budgeted" {
				got[labels["reason"]] = series.GetGauge().GetValue()
			}
		}
	}
	if len(got) != 1 || got["underutilized"] != 4 {
		t.Errorf("allowed disruptions by reason: %v, want underutilized 4", got)
	}
}
