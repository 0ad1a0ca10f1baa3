package disruption

import (
	"testing"
	"time"
)

// A controller that is short of processor time ends its search when the budget is over, not
// when it has done all the steps of one.
func TestSearchIsMeasuredByTheClock(t *testing.T) {
	reader := &fleetReader{settings: Settings{Budget: 3 * time.Second}}
	policy := reader.search(func() time.Duration { return 5 * time.Second })
	if policy.Budget != 3*time.Second || policy.Elapsed == nil || policy.Elapsed() != 5*time.Second {
		t.Errorf("got a budget of %s, measured: %v", policy.Budget, policy.Elapsed != nil)
	}
}
