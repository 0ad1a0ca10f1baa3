package differential

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/bench/workload"
)

var (
	problems = flag.Int("problems", 300, "how many clusters to compare")
	first    = flag.Uint64("first", 0, "the seed of the first cluster")
	shrunk   = flag.Bool("shrink", false, "print what is left of a failing cluster once everything is taken away that the failure does not need")
	also     = flag.String("also", "", "report findings of this kind too, for instance \"karpenter broken\"")
)

// TestNapSchedulesWhateverKarpenterSchedulesAtNoHigherPrice is the promise that
// a user who changes engines relies on.
func TestNapSchedulesWhateverKarpenterSchedulesAtNoHigherPrice(t *testing.T) {
	kinds := map[string]int{}
	pods, napOnly, compared, nap, karpenter := 0, 0, 0, 0.0, 0.0
	for seed := *first; seed < *first+uint64(*problems); seed++ {
		in, err := Generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(t.Context(), in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		pods, napOnly, nap, karpenter = pods+c.Pods, napOnly+c.NapOnly, nap+c.NapCost, karpenter+c.KarpenterCost
		if c.KarpenterCost > 0 {
			compared++
		}
		for _, kind := range []string{BrokenRule, LostPod, Dearer, WrongBound, KarpenterBroken} {
			if !c.Has(kind) {
				continue
			}
			kinds[kind]++
			if kind != KarpenterBroken || *also == kind {
				t.Errorf("seed %d:\n%s", seed, explain(t, in, c, kind))
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %d of %d clusters", kind, kinds[kind], *problems)
	}
	t.Logf("%d pods; %d placed by nap alone; cost of %d clusters: nap $%.2f/h, Karpenter $%.2f/h", pods, napOnly, compared, nap, karpenter)
	if compared < *problems/4 {
		t.Errorf("costs of only %d of %d clusters could be compared: the generator no longer tests the promise", compared, *problems)
	}
}

func explain(t *testing.T, in *workload.Input, c *Comparison, kind string) string {
	var b strings.Builder
	if *shrunk {
		in = Shrink(in, func(smaller *workload.Input) bool {
			found, err := Compare(t.Context(), smaller)
			return err == nil && found.Has(kind)
		})
		var err error
		if c, err = Compare(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		b.WriteString(YAML(in))
	}
	for _, f := range c.Findings {
		if f.Kind == kind {
			fmt.Fprintf(&b, "  %s: %s\n", f.Kind, f.Message)
		}
	}
	return b.String()
}
