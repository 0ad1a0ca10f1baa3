package provisioning

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/fleet"
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

// A cluster that is as large as it may be says so once, not in every round.
func TestWhyNothingIsCreatedIsLoggedOnceWhileItLasts(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	r := &reporter{}
	full := notCreated{"general", "--max-nodes allows 5"}
	rounds := []map[notCreated]int{{full: 3}, {full: 2}, {full: 2, {"gpu", "paused"}: 1}, {}, {full: 1}}
	for _, now := range rounds {
		r.logNotCreated(logger, now)
	}
	want := []string{
		`"level"=0 "msg"="planned nodeclaims are not created now" "NodePool"="general" "count"=3 "reason"="--max-nodes allows 5"`,
		`"level"=0 "msg"="planned nodeclaims are not created now" "NodePool"="gpu" "count"=1 "reason"="paused"`,
		`"level"=0 "msg"="planned nodeclaims are not created now" "NodePool"="general" "count"=1 "reason"="--max-nodes allows 5"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}

func TestPlanThatStaysTheSameIsLoggedOnce(t *testing.T) {
	lines := 0
	logger := funcr.New(func(string, string) { lines++ }, funcr.Options{})
	r := &reporter{}
	in := &planInputs{input: &fleet.Input{Problem: &model.Problem{}}}
	for _, cost := range []model.Money{1_000_000, 1_000_000, 1_000_000, 2_000_000, 1_000_000} {
		r.logPlanned(logger, in, &model.Plan{Cost: cost})
	}
	if lines != 3 {
		t.Errorf("%d lines, want one for each plan that differs from the one before", lines)
	}
}
