package state_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/eligibility"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/state"
)

// A node of a command takes of quotas what will be bought, which may be of another family than the
// option that was chosen for its room.
func TestDescribedNodeTakesItsOwnQuota(t *testing.T) {
	const gi = 1 << 30
	size := func(name string, cores int64, price float64) model.InstanceType {
		return model.InstanceType{Name: name, Capacity: model.Resources{cores * 1000, cores * 4 * gi, 0, 20}, Offerings: []model.Offering{{
			Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(price), Available: true,
			Quotas: []model.QuotaUse{{Quota: name, Amount: cores}},
		}}}
	}
	pods := model.PodClass{Requests: model.Resources{3000, gi, 0, 1}, Pods: []model.PodRef{{Namespace: "default", Name: "a"}}}
	p := compiled.Compile(&model.DisruptionProblem{
		Now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		Problem: &model.Problem{
			Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size("large", 32, 1), size("small", 4, 0.2)}}},
			Classes: []model.PodClass{pods}, Pools: []model.Pool{{Name: "general", NodeLimit: -1}},
			Quotas: []model.Quota{{Name: "large", Left: 40}, {Name: "small", Left: 4}},
		},
		Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized}},
	}, nil)
	s := state.New(p, eligibility.New(p))
	buyer := state.NewBuyer(s)
	left := func() []int64 { return []int64{s.Ledger.Left(0), s.Ledger.Left(1)} }
	large := slices.IndexFunc(p.Options, func(o compiled.NodeOption) bool { return o.Price == model.USD(1) })
	start := s.Mark()
	bin := s.Buy(int32(large))
	for range 2 { // what was described before is described alike
		if node := buyer.Describe(bin); node.Best().Price != model.USD(0.2) {
			t.Fatalf("the node is one of $%v, want the small one", node.Best().Price.Dollars())
		}
		if got := left(); !slices.Equal(got, []int64{40, 0}) {
			t.Errorf("%v are left of the quotas, want all of the large and nothing of the small family", got)
		}
	}
	fork := s.Fork()
	for name, s := range map[string]*state.State{"the state": s, "its fork": fork} {
		s.Undo(start)
		if got := []int64{s.Ledger.Left(0), s.Ledger.Left(1)}; !slices.Equal(got, []int64{40, 4}) {
			t.Errorf("%s has %v left of the quotas after all is undone, want 40 and 4", name, got)
		}
	}
}
