package planner_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
)

// TestPlanOfUpToThousandPodsIsThatOfAnyMachine: twenty times the budget are gone before
// the search begins, as on a machine that does other work, and the plan is the same.
func TestPlanOfUpToThousandPodsIsThatOfAnyMachine(t *testing.T) {
	const budget = 50 * time.Millisecond
	for name, draw := range inputs() {
		p := draw(rand.New(rand.NewPCG(1, 2)))
		if p.PodCount() > 1_000 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p.Policy = model.Policy{Budget: budget}
			want := planner.Solve(p)
			p.Policy.Elapsed = func() time.Duration { return 20 * budget }
			got := planner.Solve(p)
			got.Stats.Replay = nil
			if a, b := mustMarshal(t, want), mustMarshal(t, got); a != b {
				t.Errorf("the plan costs %s on %d nodes, want %s on %d", got.Cost, len(got.NewNodes), want.Cost, len(want.NewNodes))
			}
		})
	}
}
