package differential

import "testing"

// Pods of app-1 spread over two zones and count a third, which they must not enter and
// in which nap buys a machine for pods that Karpenter leaves out: see "A spread counts
// what the scheduler counts" in docs/differences.md.
func TestCompareSpreadCountsZoneOfOtherPods(t *testing.T) {
	in, err := Generate(882)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if c.NapOnly == 0 {
		t.Errorf("nap places no pod that Karpenter leaves out: the cluster no longer tests the difference")
	}
	if c.Has(LostPod) {
		t.Errorf("lost pods are reported: %v", c.Findings)
	}
}
