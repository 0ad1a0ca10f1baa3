package purchasebackoff

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// refusedRound is a plan for a workload whose claim ends by refusals.
func refusedRound(p *Purchases, n int, web Workload) []Outcome {
	claim := fmt.Sprint("general-", n)
	p.Bought(fmt.Sprint("plan-", n), "general", claim, []Workload{web})
	p.Unsold(claim)
	return p.Observe(View{
		Snapshot: fleet.NewStore().Snapshot(), Waiting: []*fleet.Pod{{UID: "web", OwnerUID: "web"}},
		Explained: func(string) bool { return false },
	})
}

// Ten plans in a row that came to nothing by refusals are enough, whatever comes first of
// their number and two minutes; none of them is a failure, and the next is.
func TestRoundsOfAWorkloadAreBounded(t *testing.T) {
	web := Workloads{}.Of(&fleet.Pod{UID: "web", OwnerUID: "web"})
	for name, c := range map[string]struct {
		every time.Duration
		want  int
	}{"by their number": {time.Second, mostRounds}, "by time": {50 * time.Second, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPurchases(clock.RealClock{})
				rounds := 0
				for ; rounds < 2*mostRounds && !p.AtAnyPrice([]Workload{"other", web}); rounds++ {
					if failed := refusedRound(p, rounds, web); len(failed) > 0 || !p.Quiet() {
						t.Fatalf("round %d is a failure: %+v", rounds, failed)
					}
					time.Sleep(c.every)
				}
				if rounds != c.want || p.AtAnyPrice([]Workload{"other"}) {
					t.Errorf("machines are bought at any price after %d rounds, want %d", rounds, c.want)
				}
				if failed := refusedRound(p, rounds, web); len(failed) != 1 {
					t.Errorf("what comes to nothing after that is no failure: %+v", failed)
				}
				time.Sleep(roundsForgotten + time.Second)
				if p.AtAnyPrice([]Workload{web}) {
					t.Error("what is long ago still counts")
				}
			})
		})
	}
}
