package consolidate_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

// Budgets that allow a little at a time must not lead to a dearer fleet in the
// end, nor to pods that move again and again on the way there.
func TestConvergeNearBoundWithFewCommands(t *testing.T) {
	f := fragmented{nodes: 500, deployments: 200, budgets: true, spreads: true}.fleet(t)
	f.Terms = model.DefaultConsolidationTerms()
	f.Terms.EvictionPrice = 0
	f.Problem.Policy.Budget = 2 * time.Millisecond // in steps: there is no clock
	bound := consolidate.LowerBound(f)
	evictions, answers := 0, 0
	for ; ; answers++ {
		moves := consolidate.Plan(f)
		if answers == 0 { // looking takes longer than answering
			for _, v := range verify.CheckMoves(f, moves) {
				t.Errorf("answer %d: %s", answers, v)
			}
		}
		if len(moves.Commands) == 0 {
			break
		}
		if evictions += moves.Evictions; answers > 60 {
			t.Fatalf("after %d answers there is still more to propose", answers)
		}
		f = apply(f, moves)
	}
	cost := model.Money(0)
	for i := range f.Problem.Nodes {
		cost += f.Problem.Nodes[i].Price
	}
	t.Logf("%s, %.4f of the bound, after %d answers; %d evictions of %d pods",
		cost, float64(cost)/float64(bound), answers, evictions, podCount(f))
	if float64(cost) > 1.03*float64(bound) {
		t.Errorf("the fleet ends at %s, the bound is %s", cost, bound)
	}
	if evictions > 3*podCount(f)/2 {
		t.Errorf("%d evictions of %d pods", evictions, podCount(f))
	}
}

// Where evictions have a price, budgets must not lead to more of them than the way
// to a fleet of that price takes.
func TestConvergeSparesPodsWhenEvictionsHaveAPrice(t *testing.T) {
	f := fragmented{nodes: 100, deployments: 60, budgets: true, spreads: true}.fleet(t)
	f.Terms = model.DefaultConsolidationTerms()
	f.Terms.EvictionPrice = model.USD(0.05)
	f.Problem.Policy.Budget = 30 * time.Millisecond // in steps: there is no clock
	evictions, pods := 0, podCount(f)
	for answers := 0; ; answers++ {
		moves := consolidate.Plan(f)
		if len(moves.Commands) == 0 {
			break
		}
		if evictions += moves.Evictions; answers > 60 {
			t.Fatalf("after %d answers there is still more to propose", answers)
		}
		f = apply(f, moves)
		f.Problem.Policy.Budget = 20 * time.Millisecond
	}
	cost := 0.0
	for i := range f.Problem.Nodes {
		cost += f.Problem.Nodes[i].Price.Dollars()
	}
	worth := cost + f.Terms.EvictionPrice.Dollars()*float64(evictions)
	t.Logf("$%.2f/h, %d evictions of %d pods: $%.2f together", cost, evictions, pods, worth)
	if worth > 42 {
		t.Errorf("the fleet ends at $%.2f/h after %d evictions, which together is $%.2f, expected at most $42", cost, evictions, worth)
	}
}

// All that an answer allocates, garbage included, is above what it needs at any
// moment.
func TestPlanMemoryOfLargeCluster(t *testing.T) {
	f := fragmented{nodes: 5000, deployments: 600, budgets: true, spreads: true, small: true}.fleet(t)
	if n := podCount(f); n < 100_000 {
		t.Fatalf("%d pods", n)
	}
	f.Terms = model.DefaultConsolidationTerms()
	f.Problem.Policy.Budget = 30 * time.Millisecond
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	moves := consolidate.Plan(f)
	runtime.ReadMemStats(&after)
	if len(moves.Commands) == 0 {
		t.Error("no nodes to remove")
	}
	const most = 500 << 20
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d MiB allocated, expected at most %d", n>>20, most>>20)
	} else {
		t.Logf("%d MiB allocated, %d pods", n>>20, podCount(f))
	}
}
