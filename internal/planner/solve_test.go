package planner

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

const gi = 1 << 30

// twoSizes is a problem with one pool that may buy 2 and 8 cores in two zones.
func twoSizes(classes ...model.PodClass) *model.Problem {
	p := &model.Problem{
		Axes:    model.NewAxes(),
		Pools:   []model.Pool{{Name: "default", NodeLimit: -1}},
		Classes: classes,
	}
	var c model.Catalog
	for _, t := range []struct {
		name  string
		cores int64
		price float64
	}{{"d2", 2, 0.1}, {"d8", 8, 0.4}} {
		it := model.InstanceType{Name: t.name, Capacity: model.Resources{t.cores * 1000, t.cores * 4 * gi, 100 * gi, 110}}
		for _, z := range []string{"z1", "z2"} {
			it.Offerings = append(it.Offerings, model.Offering{Zone: z, CapacityType: model.OnDemand, Price: model.USD(t.price), Available: true})
		}
		c.InstanceTypes = append(c.InstanceTypes, it)
	}
	p.Catalogs = []model.Catalog{c}
	return p
}

func pods(name string, count int, milli int64) model.PodClass {
	c := model.PodClass{Owner: "Deployment default/" + name, Requests: model.Resources{milli, gi, 0, 1}}
	c.Namespace, c.Labels = "default", map[string]string{"app": name}
	for i := range count {
		c.Pods = append(c.Pods, model.PodRef{Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i)})
	}
	return c
}

func TestSolveMalformedClassDoesNotAffectOthers(t *testing.T) {
	bad := pods("bad", 1, -5)
	plan := Solve(twoSizes(bad, pods("good", 3, 500)))
	if len(plan.Unschedulable) != 1 || plan.Unschedulable[0].Reason != model.ReasonPodInvalid || plan.Unschedulable[0].Class != 0 {
		t.Fatalf("got %+v, want the malformed class alone", plan.Unschedulable)
	}
	if len(plan.NewNodes) != 1 || plan.Cost != model.USD(0.1) {
		t.Errorf("got %d nodes for %s, want one d2", len(plan.NewNodes), plan.Cost)
	}
}
