package state_test

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// Workers whose states differ make changes of which one knows and the other does not,
// and in the end ask for nodes that limits do not allow.
func TestForkTakesOverWhatIsBooked(t *testing.T) {
	const gi = 1 << 30
	size := model.InstanceType{Name: "d4", Capacity: model.Resources{4000, 16 * gi, 0, 20},
		Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.2), Available: true}}}
	pods := model.PodClass{Requests: model.Resources{3000, gi, 0, 1}, Pods: []model.PodRef{{Namespace: "default", Name: "a"}}}
	f := &model.DisruptionProblem{
		Now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		Problem: &model.Problem{
			Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size}}}, Classes: []model.PodClass{pods},
			Pools: []model.Pool{{Name: "general", NodeLimit: -1, Limits: []model.Limit{{Axis: model.CPU, Value: 4000}}}},
		},
		Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized}},
	}
	p := compiled.Compile(f, nil)
	main := state.New(p, eligibility.New(p))
	option := p.Options[0].Option
	if !main.Ledger.Admits(option) {
		t.Fatal("the limit leaves no room for a single node")
	}
	main.Book(option)
	for name, s := range map[string]*state.State{"the state": main, "its fork": main.Fork()} {
		if s.Ledger.Admits(option) {
			t.Errorf("%s would buy a second node", name)
		}
	}
	capped := state.New(p, eligibility.New(p))
	capped.Ledger.Cap(main.Ledger)
	if capped.Ledger.Admits(option) || capped.Fork().Ledger.Admits(option) {
		t.Error("the state or its fork would buy with what is kept from it")
	}
}
