package differential

import "testing"

// Where nap places pods that Karpenter leaves out, none counts as lost: Karpenter may leave out others
// for that, and a spread may count the zone of pods that nap alone has bought for. See "Who waits when
// something is short" and "A spread counts what the scheduler counts" in docs/differences.md.
func TestComparePodsThatOnlyNapPlaces(t *testing.T) {
	for _, seed := range []uint64{2060, 2119, 2355} {
		in, err := Generate(seed)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if c.NapOnly == 0 {
			t.Errorf("seed %d: nap places no pod that Karpenter leaves out: the cluster no longer tests the difference", seed)
		}
		if c.Has(LostPod) {
			t.Errorf("seed %d: lost pods are reported: %v", seed, c.Findings)
		}
	}
}
