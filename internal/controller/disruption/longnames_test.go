package disruption

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
)

// Names of AKS machines are long. An event that ends before the amount that decides says of a
// node which would pay for its evictions that it does not.
func TestEventSaysAllThatKeepsANodeWithALongName(t *testing.T) {
	const name = "aks-napmachines-40863127-general-x7k2p-vm0001"
	p := &compiled.Problem{
		Input: &model.DisruptionProblem{Terms: model.ConsolidationTerms{EvictionPrice: model.USD(0.002), Payback: time.Hour}},
		// Per hour within the payback.
		EvictionPrice: float64(model.USD(0.002)),
	}
	for _, test := range []struct {
		pods            int
		units, expected float64
		want            []string
	}{
		{1, 1, 0.56, []string{"Pods were moved here to save $0.560/h", "saves $0.1074/h", "less than that and the $0.002 of evicting its 1 pod"}},
		{110, 123.4567, 12.3456, []string{"Pods were moved here to save $12.3456/h", "the $0.246913 of evicting its 110 pods"}},
		{110, 123.457, 0, []string{"Giving back " + name, "($0.002 times a disruption cost of 123.457, $0.246914 in all)"}},
	} {
		cost := float64(model.USD(test.expected)) + p.EvictionPrice*test.units
		kept := p.DoesNotPay(0, name, "its ", test.pods, model.USD(0.1074), cost, test.units)
		for _, e := range event.Unconsolidatable(&corev1.Node{}, &karpv1.NodeClaim{}, kept.Reason, kept.Message) {
			if strings.Contains(e.Message, "...") {
				t.Errorf("the event is cut: %s", e.Message)
			}
			for _, want := range test.want {
				if !strings.Contains(e.Message, want) {
					t.Errorf("the event %q, want %q in it", e.Message, want)
				}
			}
		}
	}
}
