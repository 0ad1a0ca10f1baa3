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
	problems = flag.Int("problems", 200, "how many clusters to compare")
	first    = flag.Uint64("first", 0, "the seed of the first cluster")
	shrunk   = flag.Bool("shrink", false,
		"print what is left of a failing cluster once everything is taken away that the failure does not need")
	also = flag.String("also", "", "report findings of this kind too, for instance \"karpenter broken\"")
)

// The known gaps of docs/differences.md, as shares of clusters: of 10,000, none lost
// pods and 4 were dearer; of 10,000 wide ones, none and 6. Somewhat more is allowed, since
// Karpenter's own plans change from run to run.
const (
	lostAllowed   = 0.0003
	dearerAllowed = 0.0005

	wideLostAllowed   = 0.0005
	wideDearerAllowed = 0.0012

	largeLostAllowed   = 0.005
	largeDearerAllowed = 0.01
)

// TestNapSchedulesWhatKarpenterDoesAtNoHigherPrice is the promise that
// a user who changes engines relies on.
func TestNapSchedulesWhatKarpenterDoesAtNoHigherPrice(t *testing.T) {
	tally := compareAll(t, Generate)
	tally.within(t, lostAllowed, dearerAllowed)
	if tally.nap > 0.8*tally.karpenter {
		t.Errorf("nap pays $%.2f/h where Karpenter pays $%.2f/h, must be at most 0.8 times (0.69 over the first 1,000 seeds)",
			tally.nap, tally.karpenter)
	}
}

// TestNapNoWorseThanKarpenterOnAllFeatures is the same for clusters
// with all that is seldom asked for.
func TestNapNoWorseThanKarpenterOnAllFeatures(t *testing.T) {
	compareAll(t, GenerateWide).within(t, wideLostAllowed, wideDearerAllowed)
}

// TestNapNoWorseThanKarpenterOnLargeClusters is the same for clusters of some hundred pods, of
// which a twentieth as many are compared.
func TestNapNoWorseThanKarpenterOnLargeClusters(t *testing.T) {
	compareSome(t, GenerateLarge, max(1, *problems/largeScale)).within(t, largeLostAllowed, largeDearerAllowed)
}

// tally is what came of many clusters.
type tally struct {
	kinds             map[string]int
	problems, pods    int
	napOnly, compared int
	nap, karpenter    float64
}

// compareAll compares the engines on the clusters of the flags' seeds.
func compareAll(t *testing.T, generate func(uint64) (*workload.Input, error)) *tally {
	return compareSome(t, generate, *problems)
}

func compareSome(t *testing.T, generate func(uint64) (*workload.Input, error), problems int) *tally {
	a := &tally{kinds: map[string]int{}, problems: problems}
	for seed := *first; seed < *first+uint64(problems); seed++ {
		in, err := generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(t.Context(), in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		a.pods, a.napOnly, a.nap, a.karpenter = a.pods+c.Pods, a.napOnly+c.NapOnly, a.nap+c.NapCost, a.karpenter+c.KarpenterCost
		if c.KarpenterCost > 0 {
			a.compared++
		}
		for _, kind := range []string{BrokenRule, LostPod, Dearer, WrongBound, Preferring, KarpenterBroken} {
			if !c.Has(kind) {
				continue
			}
			a.kinds[kind]++
			switch {
			case kind == BrokenRule || kind == WrongBound || *also == kind:
				t.Errorf("seed %d:\n%s", seed, explain(t, in, c, kind))
			case kind == LostPod || kind == Dearer:
				t.Logf("seed %d:\n%s", seed, explain(t, in, c, kind))
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(a.kinds)) {
		t.Logf("%s: %d of %d clusters", kind, a.kinds[kind], a.problems)
	}
	t.Logf("%d pods; %d placed by nap alone; cost of %d clusters: nap $%.2f/h, Karpenter $%.2f/h",
		a.pods, a.napOnly, a.compared, a.nap, a.karpenter)
	return a
}

// within fails on more lost pods or dearer plans than the known gaps explain. A few
// clusters more are due to chance when there are few.
func (a *tally) within(t *testing.T, lost, dearer float64) {
	if most := 3 + lost*float64(a.problems); float64(a.kinds[LostPod]) > most {
		t.Errorf("nap loses pods that Karpenter schedules in %d clusters, at most %.0f are known gaps", a.kinds[LostPod], most)
	}
	if most := 3 + dearer*float64(a.problems); float64(a.kinds[Dearer]) > most {
		t.Errorf("nap pays more than Karpenter in %d clusters, at most %.0f are known gaps", a.kinds[Dearer], most)
	}
	if a.compared < a.problems/5 {
		t.Errorf("the costs of only %d of %d clusters could be compared: the generator no longer tests the promise", a.compared, a.problems)
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

// Pods that have a place only if they come before others do not decide where all others
// go. Plans in the order that found them a place cost 1.4 to 2.4 times as much: with 80
// nodes of eight pods each, and with 40 for pods that need much memory where the NodePool
// sells little.
func TestPodsPlacedFirstDoNotRaiseCost(t *testing.T) {
	for _, seed := range []uint64{4158, 6051, 10205} {
		in, err := GenerateLarge(seed)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("seed %d: nap pays $%.2f/h, Karpenter $%.2f/h", seed, c.NapCost, c.KarpenterCost)
		// Karpenter's plan differs by up to a sixth from run to run.
		if c.Has(LostPod) || c.NapCost == 0 || c.NapCost >= c.KarpenterCost {
			t.Errorf("seed %d: nap pays $%.2f/h, Karpenter $%.2f/h; findings: %v", seed, c.NapCost, c.KarpenterCost, c.Findings)
		}
	}
}
