package consolidate

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Boards that differ make moves of which one knows and the other does not, and in
// the end ask for machines that there are not.
func TestABoardThatFollowsHasTheSameLeftOfLimits(t *testing.T) {
	const gi = 1 << 30
	size := model.InstanceType{Name: "d4", Capacity: model.Resources{4000, 16 * gi, 0, 20}, Offerings: []model.Offering{{Zone: "z1", CapacityType: model.OnDemand, Price: model.USD(0.2), Available: true}}}
	pods := model.PodClass{Requests: model.Resources{3000, gi, 0, 1}, Pods: []model.PodRef{{Namespace: "default", Name: "a"}}}
	f := &model.DisruptionProblem{
		Now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		Problem: &model.Problem{
			Axes: model.NewAxes(), Catalogs: []model.Catalog{{InstanceTypes: []model.InstanceType{size}}}, Classes: []model.PodClass{pods},
			Pools: []model.Pool{{Name: "general", NodeLimit: -1, Limits: []model.Limit{{Axis: model.CPU, Value: 4000}}}},
		},
		Policies: []model.DisruptionPolicy{{Pool: "general", Consolidation: model.WhenEmptyOrUnderutilized}},
	}
	main := newBoard(newSite(f))
	option := main.menu[0].option
	if !main.ledger.Admits(option) {
		t.Fatal("the limit leaves no room for a single machine")
	}
	main.reserve(nil)
	s := newSearch(main)
	for i, b := range s.boards {
		if b.ledger.Admits(option) {
			t.Errorf("board %d would buy a second machine", i)
		}
	}
}
