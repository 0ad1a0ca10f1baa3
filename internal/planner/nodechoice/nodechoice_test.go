package nodechoice_test

import (
	"fmt"
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/nodechoice"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

const gi = 1 << 30

// compiled has sizes of 2 and 8 cores and two classes with so many pods of half a core.
// Pods of the second class keep apart from each other on hosts.
func compiled(t *testing.T, pods int) *instance.Instance {
	t.Helper()
	p := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "default", NodeLimit: -1}}}
	var c model.Catalog
	for cores, price := range map[int64]float64{2: 0.1, 8: 0.39} {
		c.InstanceTypes = append(c.InstanceTypes, model.InstanceType{
			Name: fmt.Sprint("d", cores), Capacity: model.Resources{cores * 1000, cores * 4 * gi, 100 * gi, 110},
			Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(price), Available: true}},
		})
	}
	p.Catalogs = []model.Catalog{c}
	for _, name := range []string{"web", "db"} {
		class := model.PodClass{Owner: name, Requests: model.Resources{500, gi, 0, 1}, Pods: make([]model.PodRef, pods)}
		class.Namespace, class.Labels = "default", map[string]string{"app": name}
		if name == "db" {
			db := &model.Selector{Requirements: model.Requirements{{Key: "app", Operator: model.In, Values: []string{"db"}}}}
			class.AntiAffinity = []model.AffinityTerm{{TopologyKey: model.LabelHostname, Selector: db, Namespaces: []string{"default"}}}
		}
		p.Classes = append(p.Classes, class)
	}
	return instance.New(feasible.New(p, nil))
}

func plan(in *instance.Instance) (*construct.Constructor, nodechoice.Result) {
	c := construct.New(in, nil, placement.Decision{}, construct.Params{})
	return c, nodechoice.Construct(c, in.Policy(), nil)
}

func TestConstructKeepsHostnameRules(t *testing.T) {
	c, res := plan(compiled(t, 12))
	if n := c.State.Unplaced(); n > 0 || res.Unplaced > 0 || res.Entangled {
		t.Fatalf("%d pods have no place: %+v", n, res)
	}
	for _, pl := range c.State.NewNodes {
		for _, pc := range pl.Pods {
			if pc.Class == 1 && pc.Count > 1 {
				t.Errorf("%d pods of db share a node", pc.Count)
			}
		}
	}
	if !res.Exact {
		t.Error("a cap per node is all that the rules say, so the packing is exact")
	}
	if cost := c.State.Cost(); res.Bound > cost {
		t.Errorf("bound %s exceeds the cost %s", res.Bound, cost)
	}
}

func TestProveBoundIsBelowEveryPlan(t *testing.T) {
	in := compiled(t, 12)
	c, _ := plan(in)
	floor := nodechoice.Bound(in, nodechoice.TargetOf(c.State, c.Index.Worth()), in.Policy(), meter.Clock{})
	if cost := c.State.Cost(); floor > cost || floor < cost/2 {
		t.Errorf("bound %s of a plan for %s", floor, cost)
	}
}

func TestProverAnswersOnlyForSameTarget(t *testing.T) {
	in := compiled(t, 12)
	c, _ := plan(in)
	prover := nodechoice.NewProver(in, meter.Clock{})
	defer prover.Wait()
	all := nodechoice.TargetOf(c.State, c.Index.Worth())
	first := prover.Start(all, in.Policy())
	half := all
	half.Placed = []int{6, 6}
	second := prover.Start(half, in.Policy())
	for _, x := range []struct {
		name   string
		proof  *nodechoice.Proof
		target nodechoice.Target
	}{{"same", first, all}, {"second", second, half}, {"another", first, half}, {"none", nil, all}} {
		t.Run(x.name, func(t *testing.T) {
			want := nodechoice.Bound(in, x.target, in.Policy(), meter.Clock{})
			if got := prover.Bound(x.proof, x.target, in.Policy()); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
