package planner_test

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// TestNodeLabelThatNoPodReadsStaysOpen is about sizes whose disks
// the buyer picks beside one that has none to pick: minValues may count both for pods
// that do not care, although other pods do.
func TestNodeLabelThatNoPodReadsStaysOpen(t *testing.T) {
	p := withChoices(model.Requirements{{Key: model.LabelInstanceType, Operator: model.Exists, MinValues: 2}},
		podOf("careless"), podOf("choosy", model.Requirement{Key: "disk", Operator: model.In, Values: []string{"ultra"}}))
	plan := planner.Solve(p)
	for _, v := range verify.Check(p, plan) {
		t.Error(v)
	}
	if len(plan.NewNodes) != 1 || plan.NewNodes[0].Pods[0].Class != 0 || len(plan.NewNodes[0].Offerings) != 4 {
		t.Errorf("got machines %+v, want one of either size for the careless pod", plan.NewNodes)
	}
}

// TestNodeLabelSetWhereSpreadWouldCountNode is about pods that spread over
// machines with a disk that the buyer picks, and that can be in one zone only: a
// machine of others in another zone must not get that disk by chance.
func TestNodeLabelSetWhereSpreadWouldCountNode(t *testing.T) {
	web := podOf("web", model.Requirement{Key: "disk", Operator: model.In, Values: []string{"premium"}})
	web.Pods = append(web.Pods, model.PodRef{Namespace: "default", Name: "web-2"}, model.PodRef{Namespace: "default", Name: "web-3"})
	web.VolumeAlternatives = []model.Requirements{{{Key: model.LabelZone, Operator: model.In, Values: []string{"z1"}}}}
	web.Labels = map[string]string{"app": "web"}
	web.Spread = []model.SpreadConstraint{{
		TopologyKey: model.LabelZone, MaxSkew: 1, Hard: true, HonorNodeAffinity: true,
		Selector: &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"web"}}}},
	}}
	job := podOf("job", model.Requirement{Key: model.LabelZone, Operator: model.In, Values: []string{"z2"}})
	p := withChoices(nil, web, job)
	p.Catalogs[0].InstanceTypes = p.Catalogs[0].InstanceTypes[:1]
	plan := planner.Solve(p)
	for _, v := range verify.Check(p, plan) {
		t.Error(v)
	}
	if len(plan.Unschedulable) > 0 {
		t.Fatalf("got %+v without a place, want a place for all", plan.Unschedulable)
	}
	for _, n := range plan.NewNodes {
		if n.Pods[0].Class == 1 && !slices.ContainsFunc(n.Requirements,
			func(r model.Requirement) bool { return r.Key == "disk" && !r.Matches("premium", true) }) {
			t.Errorf("the machine for job asks for %s, must not get the disk that web spreads over", n.Requirements)
		}
	}
}

// TestOfferingDecidesOverWhatBuyersChoose is about a size that can have a disk in one zone only:
// what the offering of the other zone says of it counts, not what the buyer would choose.
func TestOfferingDecidesOverWhatBuyersChoose(t *testing.T) {
	p := withChoices(nil, podOf("choosy", model.Requirement{Key: "disk", Operator: model.In, Values: []string{"ultra"}}))
	for i := range p.Catalogs[0].InstanceTypes {
		p.Catalogs[0].InstanceTypes[i].Offerings[1].Labels = map[string]string{"disk": "premium"}
	}
	plan := planner.Solve(p)
	for _, v := range verify.Check(p, plan) {
		t.Error(v)
	}
	if len(plan.NewNodes) != 1 || len(plan.NewNodes[0].Offerings) != 1 || plan.NewNodes[0].Offerings[0].Offering != 0 {
		t.Errorf("got machines %+v, want one that is bought in zone z1 alone", plan.NewNodes)
	}
}

// withChoices is a problem with two sizes, the first of which leaves its disk to the
// buyer, for one pool.
func withChoices(pool model.Requirements, classes ...model.PodClass) *model.Problem {
	size := func(name string, price float64, choices map[string][]string) model.InstanceType {
		offering := func(zone string) model.Offering {
			return model.Offering{Zone: zone, CapacityType: model.OnDemand, Price: model.USD(price), Available: true}
		}
		return model.InstanceType{
			Name: name, Choices: choices, Labels: map[string]string{model.LabelInstanceType: name}, Capacity: model.Resources{4000, 16 << 30, 0, 10},
			Offerings: []model.Offering{offering("z1"), offering("z2")},
		}
	}
	return &model.Problem{
		Axes: model.NewAxes(),
		Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{
			size("picked", 0.2, map[string][]string{"disk": {"premium", "ultra"}}), size("plain", 0.3, nil),
		}}},
		Pools:   []model.Pool{{Name: "main", NodeLimit: -1, Requirements: pool}},
		Classes: classes,
	}
}

// podOf is a class of one pod that fills a machine.
func podOf(name string, rules ...model.Requirement) model.PodClass {
	return model.PodClass{
		Pods: []model.PodRef{{Namespace: "default", Name: name}}, PodShape: model.PodShape{Namespace: "default"},
		Requests: model.Resources{3000, 1 << 30, 0, 1}, PodRules: model.PodRules{NodeRequirements: rules},
	}
}
