package provisioning

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Pods that find no place are told of the NodePools which would take them and are paused,
// unless that is the reason itself.
func TestEventNamesPausedPools(t *testing.T) {
	p := &model.Problem{LeftOut: []model.LeftOut{
		{Pool: "a", Reason: model.ReasonPoolPaused, Message: "its machines do not register"},
		{Pool: "b", Reason: model.ReasonNoPool, Message: "it is not Ready"},
		{Pool: "c", Reason: model.ReasonPoolPaused, Message: "three machines did not boot"},
	}}
	for _, c := range []struct {
		reason  model.Reason
		leftOut []int
		want    string
	}{
		{model.ReasonResources, []int{0, 1, 2}, "NodePool a: its machines do not register; NodePool c: three machines did not boot"},
		{model.ReasonResources, []int{1}, ""},
		{model.ReasonPoolPaused, []int{0, 1}, ""},
	} {
		if got := pausedText(p, &model.Unschedulable{Reason: c.reason, LeftOut: c.leftOut}); got != c.want {
			t.Errorf("%s, left out %v: %q, want %q", c.reason, c.leftOut, got, c.want)
		}
	}
}
