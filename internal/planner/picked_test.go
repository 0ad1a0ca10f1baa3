package planner_test

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/oracle"
)

// TestALabelThatNobodyOnAMachineReadsLeavesItsChoiceOpen is about sizes whose disks
// the buyer picks beside one that has none to pick: minValues may count both for pods
// that do not care, although other pods do.
func TestALabelThatNobodyOnAMachineReadsLeavesItsChoiceOpen(t *testing.T) {
	size := func(name string, price float64, choices map[string][]string) model.InstanceType {
		return model.InstanceType{
			Name: name, Choices: choices, Labels: map[string]string{model.LabelInstanceType: name}, Capacity: model.Resources{4000, 16 << 30, 0, 10},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(price), Available: true}},
		}
	}
	pod := func(name string, rules model.Requirements) model.PodClass {
		return model.PodClass{
			Pods: []model.PodRef{{Namespace: "default", Name: name}}, PodShape: model.PodShape{Namespace: "default"},
			Requests: model.Resources{3000, 1 << 30, 0, 1}, NodeRequirements: rules,
		}
	}
	p := &model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
			size("picked", 0.2, map[string][]string{"disk": {"premium", "ultra"}}), size("plain", 0.3, nil),
		}}},
		Pools: []model.Pool{{Name: "main", NodeLimit: -1, Requirements: model.Requirements{{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: 2}}}},
		Classes: []model.PodClass{
			pod("careless", nil),
			pod("choosy", model.Requirements{{Key: "disk", Operator: model.In, Values: []string{"ultra"}}}),
		},
	}
	plan := planner.Solve(p)
	for _, v := range oracle.Check(p, plan) {
		t.Error(v)
	}
	if len(plan.NewNodes) != 1 || plan.NewNodes[0].Pods[0].Class != 0 || len(plan.NewNodes[0].Offerings) != 2 {
		t.Errorf("got machines %+v, want one of either size for the careless pod", plan.NewNodes)
	}
}
