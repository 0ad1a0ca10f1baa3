package planner

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Tenants have a NodePool each, more than can be compiled one by one: the plan is the one
// that the NodePools in use alone would give.
func TestPlanOfManyNodePoolsIsThatOfThoseInUse(t *testing.T) {
	catalog := model.Catalog{}
	for i := range 400 {
		it := model.InstanceType{Name: fmt.Sprintf("d%03d", i), Capacity: model.Resources{int64(2+i) * 1000, int64(8+4*i) * gi, 100 * gi, 110}}
		for _, zone := range []string{"z1", "z2", "z3"} {
			it.Offerings = append(it.Offerings, model.Offering{Zone: zone, CapacityType: model.OnDemand,
				Price: model.USD(0.05 * float64(2+i)), Available: true})
		}
		catalog.InstanceTypes = append(catalog.InstanceTypes, it)
	}
	pool := func(i int) model.Pool {
		return model.Pool{Name: fmt.Sprintf("tenant-%03d", i), NodeLimit: -1,
			Taints: []model.Taint{{Key: "tenant", Value: fmt.Sprint(i), Effect: model.NoSchedule}}}
	}
	problem := func(tenants ...int) *model.Problem {
		p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{catalog}}
		for _, i := range tenants {
			p.Pools = append(p.Pools, pool(i))
		}
		for _, i := range []int{7, 300, 444} {
			c := pods(fmt.Sprint("web-", i), 20, 1500)
			c.Tolerations = []model.Toleration{{Key: "tenant", Value: fmt.Sprint(i), Effect: model.NoSchedule}}
			p.Classes = append(p.Classes, c)
		}
		return p
	}
	all := make([]int, 450)
	for i := range all {
		all[i] = i
	}
	many, few := Solve(problem(all...)), Solve(problem(7, 300, 444))
	if many.Cost != few.Cost || len(many.NewNodes) != len(few.NewNodes) || len(many.Unschedulable) != 0 {
		t.Errorf("got %d nodes for %s and %d classes left, want %d for %s", len(many.NewNodes), many.Cost, len(many.Unschedulable),
			len(few.NewNodes), few.Cost)
	}
}
