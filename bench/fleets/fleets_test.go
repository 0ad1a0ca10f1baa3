package fleets

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

func TestAFleetIsFragmentedAndAlwaysTheSame(t *testing.T) {
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
		if n.EvictionPrice == model.DefaultMoveTerms().EvictionPrice.Dollars() && n.Cost > k.Cost*1.001 {
			t.Errorf("nap ends at $%.4f, Karpenter at $%.4f", n.Cost, k.Cost)
		}
	}
}
