package fleets

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/verify"
)

func TestFleetIsFragmentedAndDeterministic(t *testing.T) {
	for _, f := range []Fleet{{Name: "small", Nodes: 40}, {Name: "guarded", Nodes: 40, Guarded: true}} {
		a, err := Draw(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Draw(f)
		if err != nil {
			t.Fatal(err)
		}
		if a.Cost() != b.Cost() || a.Pods() != b.Pods() || a.Nodes() != 40 {
			t.Errorf("%s: %d nodes for $%.2f with %d pods, and again $%.2f with %d", f.Name, a.Nodes(), a.Cost(), a.Pods(), b.Cost(), b.Pods())
		}
		if a.Pods() < 80 || a.Pods() > 40*podsAtAll {
			t.Errorf("%s: %d pods", f.Name, a.Pods())
		}
	}
}

// TestBothEnginesConverge also checks, after every answer of either engine, that
// every pod has a node and no node more than it holds.
func TestBothEnginesConverge(t *testing.T) {
	row, err := Run(t.Context(), Fleet{Name: "tiny", Nodes: 8}, Settings{UpstreamTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	k := row.Karpenter
	if k.Moves == 0 || k.Cost >= row.Before {
		t.Errorf("Karpenter gave nothing back: %+v", k)
	}
	for _, n := range row.Nap {
		if n.Cost < row.Bound-0.0001 || n.Cost >= row.Before {
			t.Errorf("at $%g an eviction: $%.4f, outside of the bound $%.4f and $%.4f before", n.EvictionPrice, n.Cost, row.Bound, row.Before)
		}
		if n.EvictionPrice == model.DefaultConsolidationTerms().EvictionPrice.Dollars() && n.Cost > k.Cost*1.001 {
			t.Errorf("nap ends at $%.4f, Karpenter at $%.4f", n.Cost, k.Cost)
		}
	}
}

// TestEnginesOverHoursOfChange also checks, every minute, that every pod has a node, no node
// is over its capacity, and consolidation made nothing dearer, took no more than
// PodDisruptionBudgets allow, and moved no pod twice for the same money.
func TestEnginesOverHoursOfChange(t *testing.T) {
	churn := Churn{Fleet: Fleet{Name: "churn", Nodes: 8, Guarded: true}, Minutes: 45, Seed: 3}
	churn.audit = func(f *model.DisruptionProblem, moves *model.Commands) error {
		if found := verify.CheckMoves(f, moves); len(found) > 0 {
			return fmt.Errorf("%d violations, the first: %s", len(found), found[0])
		}
		return nil
	}
	nap, err := Live(t.Context(), churn, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Live(t.Context(), churn, false)
	if err != nil {
		t.Fatal(err)
	}
	if nap.Cost != again.Cost || nap.Evictions != again.Evictions {
		t.Errorf("$%.4f and %d evictions, and again $%.4f and %d", nap.Cost, nap.Evictions, again.Cost, again.Evictions)
	}
	if nap.Cost < nap.Hindsight || nap.Evictions == 0 || nap.Bought == 0 || nap.TakenBack == 0 {
		t.Errorf("%+v", nap)
	}
	karpenter, err := Live(t.Context(), churn, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("nap %+v", nap)
	t.Logf("karpenter %+v", karpenter)
	if nap.Cost/nap.Hindsight > 1.02*karpenter.Cost/karpenter.Hindsight {
		t.Errorf("nap paid $%.4f where $%.4f was needed, Karpenter $%.4f where $%.4f was",
			nap.Cost, nap.Hindsight, karpenter.Cost, karpenter.Hindsight)
	}
}
