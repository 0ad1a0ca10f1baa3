package planner

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/portfolio"
)

// bigCatalog has 400 sizes in three zones.
func bigCatalog() model.Catalog {
	catalog := model.Catalog{}
	for i := range 400 {
		it := model.InstanceType{Name: fmt.Sprintf("d%03d", i), Capacity: model.Resources{int64(2+i) * 1000, int64(8+4*i) * gi, 100 * gi, 110}}
		for _, zone := range []string{"z1", "z2", "z3"} {
			it.Offerings = append(it.Offerings, model.Offering{Zone: zone, CapacityType: model.OnDemand,
				Price: model.USD(0.05 * float64(2+i)), Available: true})
		}
		catalog.InstanceTypes = append(catalog.InstanceTypes, it)
	}
	return catalog
}

// tenant is the NodePool of a tenant, whose taint keeps others out.
func tenant(i int) model.Pool {
	return model.Pool{Name: fmt.Sprintf("tenant-%03d", i), NodeLimit: -1,
		Taints: []model.Taint{{Key: "tenant", Value: fmt.Sprint(i), Effect: model.NoSchedule}}}
}

// ofTenant are pods that tolerate the taint of a tenant.
func ofTenant(i, n int, millis int64) model.PodClass {
	c := pods(fmt.Sprint("web-", i), n, millis)
	c.Tolerations = []model.Toleration{{Key: "tenant", Value: fmt.Sprint(i), Effect: model.NoSchedule}}
	return c
}

// Tenants have a NodePool each, more than can be compiled one by one: the plan is the one
// that the NodePools in use alone would give.
func TestPlanOfManyNodePoolsIsThatOfThoseInUse(t *testing.T) {
	problem := func(tenants ...int) *model.Problem {
		p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
		for _, i := range tenants {
			p.Pools = append(p.Pools, tenant(i))
		}
		for _, i := range []int{7, 300, 444} {
			p.Classes = append(p.Classes, ofTenant(i, 20, 1500))
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

// Where tenants may use a NodePool for all, too, the plan is the one that it alone would give.
func TestPlanOfTenantsBesideOneForAllIsThatOfTheOne(t *testing.T) {
	problem := func(tenants int) *model.Problem {
		p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
		for i := range tenants {
			p.Pools = append(p.Pools, tenant(i))
		}
		p.Pools = append(p.Pools, model.Pool{Name: "for-all", NodeLimit: -1})
		for i := range 60 {
			p.Classes = append(p.Classes, ofTenant(i, 3, 1500))
		}
		return p
	}
	many, one := Solve(problem(60)), Solve(problem(0))
	if many.Cost != one.Cost || len(many.NewNodes) != len(one.NewNodes) || len(many.Unschedulable) != 0 {
		t.Errorf("got %d nodes for %s and %d classes left, want %d for %s", len(many.NewNodes), many.Cost, len(many.Unschedulable),
			len(one.NewNodes), one.Cost)
	}
}

// Tenants share one NodePool, whose limit does not suffice for all: as many get a place as it
// holds, those of higher priority first, and the others learn what is in the way.
func TestTenantsOfOneNodePoolShareItsLimit(t *testing.T) {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
	p.Pools = []model.Pool{{Name: "all", NodeLimit: 30, Requirements: model.Requirements{{Key: "tenant", Operator: model.Exists}}}}
	const tenants = 130
	for i := range tenants {
		c := pods(fmt.Sprint("web-", i), 1, 1500)
		c.NodeRequirements = model.Requirements{{Key: "tenant", Operator: model.In, Values: []string{fmt.Sprint(i)}}}
		c.Priority = int32(i % 2)
		p.Classes = append(p.Classes, c)
	}
	plan := Solve(p)
	bought := 0
	for i := range plan.NewNodes {
		bought++
		if own := plan.NewNodes[i].Pods[0].Class; own%2 == 0 {
			t.Errorf("tenant %d has a node before those of higher priority", own)
		}
	}
	if bought != 30 || len(plan.Unschedulable) != tenants-30 {
		t.Errorf("%d nodes, %d tenants wait, want 30 and %d", bought, len(plan.Unschedulable), tenants-30)
	}
	for i := range plan.Unschedulable {
		if plan.Unschedulable[i].Reason != model.ReasonNodeLimit {
			t.Fatalf("tenant %d waits for %s", plan.Unschedulable[i].Class, plan.Unschedulable[i].Reason)
		}
	}
}

// What parts cost that are planned in turn is no bound of the whole, which might have left the
// cheap machine to the one that needs it more.
func TestPartsInTurnHaveNoBound(t *testing.T) {
	catalog := model.Catalog{}
	for _, it := range []struct {
		name  string
		price float64
	}{{"cheap", 1}, {"near", 1.1}, {"dear", 3}} {
		o := model.Offering{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(it.price), Available: true}
		if it.name == "cheap" {
			o.Quotas = []model.QuotaUse{{Quota: "family", Amount: 1}}
		}
		catalog.InstanceTypes = append(catalog.InstanceTypes,
			model.InstanceType{Name: it.name, Capacity: model.Resources{4000, 16 * gi, 100 * gi, 110}, Offerings: []model.Offering{o}})
	}
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{catalog}, Quotas: []model.Quota{{Name: "family", Left: 1}}}
	for i, other := range []string{"near", "dear"} {
		c := ofTenant(i, 1, 1500)
		c.NodeRequirements = model.Requirements{{Key: model.LabelInstanceType, Operator: model.In, Values: []string{"cheap", other}}}
		p.Pools, p.Classes = append(p.Pools, tenant(i)), append(p.Classes, c)
	}
	plan, whole := solve(p, portfolio.Standard(), sizes{}, nil), Solve(p)
	if plan.Cost != model.USD(4) || whole.Cost != model.USD(2.1) || plan.LowerBound > whole.Cost {
		t.Errorf("in turn %s, at least %s; as a whole %s", plan.Cost, plan.LowerBound, whole.Cost)
	}
}

// NodePools that offer the same are one in planning, until limits tell them apart: the plan
// costs what that of a single NodePool costs, and buys beyond no limit.
func TestPlanOfNodePoolsThatOfferTheSameIsThatOfOne(t *testing.T) {
	problem := func(n int) *model.Problem {
		p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
		for i := range n {
			p.Pools = append(p.Pools, model.Pool{Name: fmt.Sprintf("team-%03d", i), NodeLimit: -1,
				Requirements: model.Requirements{{Key: "team", Operator: model.In, Values: []string{fmt.Sprint(i)}}}})
		}
		p.Classes = []model.PodClass{pods("web", 30, 1500), pods("db", 7, 6000)}
		return p
	}
	one, many := Solve(problem(1)), Solve(problem(60))
	if many.Cost != one.Cost || len(many.Unschedulable) != 0 {
		t.Errorf("got %s and %d classes left, want %s", many.Cost, len(many.Unschedulable), one.Cost)
	}
	limited := problem(60)
	for i := range limited.Pools {
		limited.Pools[i].NodeLimit = 1
	}
	plan, bought := Solve(limited), map[int]int{}
	for i := range plan.NewNodes {
		bought[plan.NewNodes[i].Pool]++
	}
	if plan.Cost != one.Cost || len(bought) != len(plan.NewNodes) || len(plan.NewNodes) < 2 {
		t.Errorf("got %s by %v, want %s and no NodePool twice", plan.Cost, bought, one.Cost)
	}
}

// What keeps pods from NodePools is told of all NodePools, those included that the plan did
// not look at.
func TestPodsLeftOverLearnOfAllNodePools(t *testing.T) {
	problem := func(class model.PodClass) *model.Problem {
		p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}, Classes: []model.PodClass{class}}
		for i := range 30 {
			p.Pools = append(p.Pools, tenant(i))
		}
		p.Pools[7].NodeLimit = 1
		return p
	}
	for name, c := range map[string]struct {
		class model.PodClass
		want  model.Reason // of tenant 7
	}{
		"more pods than the limit leaves room for": {ofTenant(7, 3, 300_000), model.ReasonNodeLimit},
		"a pod that is too large":                  {ofTenant(7, 1, 500_000), model.ReasonResources},
	} {
		plan := Solve(problem(c.class))
		if len(plan.Unschedulable) != 1 || len(plan.Unschedulable[0].Pools) != 30 {
			t.Fatalf("%s: got %+v, want verdicts on 30 NodePools", name, plan.Unschedulable)
		}
		for _, v := range plan.Unschedulable[0].Pools {
			want := model.ReasonTaint
			if v.Pool == 7 {
				want = c.want
			}
			last := v.Removed[len(v.Removed)-1]
			removed := 0
			for _, r := range v.Removed {
				removed += r.Count
			}
			if v.Offerings != 1200 || removed != 1200 || last.Reason != want {
				t.Errorf("%s: NodePool %d: got %+v, want %s at last", name, v.Pool, v, want)
			}
		}
	}
}

// Tenants whose pods wait all at once are planned in parts: as each alone would be, and with
// work that grows with their number and not with its square.
func TestPlanOfManyTenantsIsThatOfEach(t *testing.T) {
	problem := func(tenants int) *model.Problem {
		p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
		for i := range tenants {
			p.Pools = append(p.Pools, tenant(i))
			p.Classes = append(p.Classes, ofTenant(i, 3, 1500))
		}
		return p
	}
	allocated := func(p *model.Problem) (plan *model.Plan, bytes uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan = Solve(p)
		runtime.ReadMemStats(&after)
		return plan, after.TotalAlloc - before.TotalAlloc
	}
	one := Solve(problem(1))
	few, little := allocated(problem(120))
	many, much := allocated(problem(480))
	for tenants, plan := range map[int]*model.Plan{120: few, 480: many} {
		if plan.Cost != one.Cost*model.Money(tenants) || plan.LowerBound != one.LowerBound*model.Money(tenants) || len(plan.Unschedulable) != 0 {
			t.Errorf("%d tenants: %s, at least %s, %d classes left; want that of %s, at least %s", tenants, plan.Cost, plan.LowerBound,
				len(plan.Unschedulable), one.Cost, one.LowerBound)
		}
		for i := range plan.NewNodes {
			if n := &plan.NewNodes[i]; n.Pods[0].Class != n.Pool {
				t.Fatalf("%d tenants: NodePool %d has pods of tenant %d", tenants, n.Pool, n.Pods[0].Class)
			}
		}
	}
	if t.Logf("%d and %d MB", little>>20, much>>20); much > 6*little {
		t.Errorf("four times the tenants take %d MB, where they took %d", much>>20, little>>20)
	}
}

// Where quotas do not suffice for all parts, the whole decides who gets what is left.
func TestPartsDoNotOverdrawQuotas(t *testing.T) {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
	for i := range p.Catalogs[0].InstanceTypes {
		it := &p.Catalogs[0].InstanceTypes[i]
		for o := range it.Offerings {
			it.Offerings[o].Quotas = []model.QuotaUse{{Quota: "cores", Amount: it.Capacity.Get(model.CPU)}}
		}
	}
	for i := range 120 {
		p.Pools = append(p.Pools, tenant(i))
		p.Classes = append(p.Classes, ofTenant(i, 1, 1500))
	}
	p.Classes[77].Priority = 1
	p.Quotas = []model.Quota{{Name: "cores", Left: 20_000}} // ten machines of two cores
	plan := Solve(p)
	if len(plan.NewNodes) != 10 || len(plan.Unschedulable) != 110 {
		t.Fatalf("got %d machines, %d classes without", len(plan.NewNodes), len(plan.Unschedulable))
	}
	if !slices.ContainsFunc(plan.NewNodes, func(n model.NewNode) bool { return n.Pool == 77 }) {
		t.Error("the pod of high priority has no place")
	}
}

// Pods of tenants that have no place are explained by all NodePools beside tenants that have.
func TestPodsLeftOverByPartsLearnOfAllNodePools(t *testing.T) {
	p := &model.Problem{Axes: model.NewAxes(), Catalogs: []model.Catalog{bigCatalog()}}
	for i := range 120 {
		p.Pools = append(p.Pools, tenant(i))
		p.Classes = append(p.Classes, ofTenant(i, 1, 1500))
	}
	p.Pools[60].NodeLimit = 0
	plan := Solve(p)
	if len(plan.NewNodes) != 119 || len(plan.Unschedulable) != 1 {
		t.Fatalf("got %d machines, %d classes without", len(plan.NewNodes), len(plan.Unschedulable))
	}
	u := plan.Unschedulable[0]
	if want := SolveWhole(p).Unschedulable[0]; !reflect.DeepEqual(u, want) || len(u.Pools) != 120 {
		t.Errorf("got class %d, %s, verdicts on %d NodePools, want what the whole says: class %d, %s", u.Class, u.Reason, len(u.Pools),
			want.Class, want.Reason)
	}
}
