package providertest

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// TestPolicyOfSizesIsAskedOnce: one refusal tells which sizes a policy denies; the launch goes
// on with the cheapest of the others, and no launch asks for a denied one in the hour after.
func TestPolicyOfSizesIsAskedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultPolicy, Size: "Standard_D*_v5"}); err != nil {
			t.Fatal(err)
		}
		for _, claim := range []string{"general-abc12", "general-abc13"} {
			m, err := w.provider.Launch(t.Context(), w.order(claim,
				sizes("Standard_D2s_v5", "Standard_D4s_v5", "Standard_D8s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1", "eastus-2")))
			if err != nil || m.Size != "Standard_D4s_v4" {
				t.Errorf("%s: %+v, %v; want the size that is allowed", claim, m, err)
			}
		}
		if n := w.Server.Stats()[vmWrites]; n != 3 {
			t.Errorf("Azure was asked for %d machines, want one refusal and two machines", n)
		}
		w.deleteAll(t)
		time.Sleep(10 * time.Minute)
		if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
	})
}
