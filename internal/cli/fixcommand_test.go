package cli

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A plan for all pods that wait takes long where there are many, and says something of limits only.
func TestOnlyLimitsArePlannedForAllWaitingPods(t *testing.T) {
	pods := []model.PodRef{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}}
	problem := &model.Problem{Axes: model.NewAxes(), Pools: []model.Pool{{Name: "general", NodeLimit: -1}}}
	for _, info := range model.Reasons() {
		if slices.Contains([]model.Reason{model.ReasonLimit, model.ReasonNodeLimit, model.ReasonCostLimit}, info.Reason) {
			continue
		}
		a := &adviser{
			made:  &madePlan{input: &fleet.Input{Problem: problem}, plan: &model.Plan{}},
			class: &model.PodClass{Pods: pods}, waiting: pods,
			left: &model.Problem{}, // which has no NodePool: a plan of it fails
		}
		if more := a.beyondLimit(info.Reason, &model.NearestMiss{Pool: "general"}); more != nil {
			t.Errorf("%s: %+v", info.Reason, more)
		}
	}
}
