package consolidate_test

import (
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// To lower the price of an eviction does not help where the node's own price is not known.
func TestNodeOfUnknownPriceSaysWhichLabelItLacks(t *testing.T) {
	for label, want := range map[string]string{
		model.LabelInstanceType: "has no label node.kubernetes.io/instance-type",
		model.LabelCapacityType: "has no label karpenter.sh/capacity-type",
		model.LabelZone:         "has no label topology.kubernetes.io/zone",
		"":                      "costs nothing that nap knows of",
		"another region":        "is in zone westeurope-1, in which nothing is sold by the price list",
	} {
		s := readFleet(t, "type small cpu=2 memory=8 price=0.1\npool general\npods web cpu=1.5 memory=1\nnode a general small age=2h : web x1\n")
		node := &s.fleet.Problem.Nodes[0]
		node.Price = 0
		node.Labels = map[string]string{model.LabelInstanceType: "small", model.LabelCapacityType: "on-demand", model.LabelZone: "z1"}
		if label == "another region" {
			node.Labels[model.LabelZone] = "westeurope-1"
		}
		delete(node.Labels, label)
		kept := consolidate.Plan(s.fleet).Kept
		if len(kept) != 1 || kept[0].Reason != model.ReasonPriceUnknown || !strings.Contains(kept[0].Message, want) {
			t.Errorf("kept are %v, want one for %s that %s", kept, model.ReasonPriceUnknown, want)
		}
	}
}
