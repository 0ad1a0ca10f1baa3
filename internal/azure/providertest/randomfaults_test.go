package providertest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// One call in ten is refused at random, a quarter of them for its rate and the
// others with a fault of the server; one operation in twenty hangs, and one
// create operation in ten of the first choice is accepted and fails. What the
// claims' controllers do about it is done here: they ask again, and where a
// machine fails after it was granted, a new claim takes the place of the old one.
// There are more claims than Azure grants writes in a burst. What more of them cost
// grows with their square: every list has them all.
func TestChaosEachClaimGetsOneVM(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { w.stumble(t, 300) }, armtest.Realistic)
}

func TestChaosEachClaimGetsOneAKSMachine(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) { w.stumble(t, 100) }, armtest.Realistic)
}

// stumble buys so many machines of an Azure that stumbles, and gives them back.
func (w *world) stumble(t *testing.T, claims int) {
	t.Helper()
	for _, f := range []armsim.Fault{
		{Kind: armsim.FaultThrottle, Rate: 0.025, RetryAfter: 2 * time.Second},
		{Kind: armsim.FaultError, Rate: 0.05, Status: http.StatusInternalServerError, Code: "InternalServerError"},
		{Kind: armsim.FaultError, Rate: 0.025, Status: http.StatusBadGateway},
		{Kind: armsim.FaultHang, Rate: 0.05, Operation: "Microsoft.Compute/virtualMachines/write"},
		{Kind: armsim.FaultFail, Rate: 0.1, Code: "ZonalAllocationFailed", Message: "No capacity.", Size: "Standard_D2s_v5"},
	} {
		if _, err := w.Server.AddFault(f); err != nil {
			t.Fatal(err)
		}
	}
	w.claimAll(t, claims, "general-")
	time.Sleep(time.Minute)
	for _, f := range w.Server.Faults() {
		if err := w.Server.RemoveFault(f.ID); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Minute)
	w.mu.Lock()
	late := len(w.failed)
	w.mu.Unlock()
	w.claimAll(t, late, "successor-")
	time.Sleep(2 * time.Minute)
	machines, err := w.provider.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(machines) != claims {
		t.Errorf("%d machines run, want exactly %d", len(machines), claims)
	}
	w.deleteAll(t)
	time.Sleep(10 * time.Minute)
	if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	w.noLeaks(t)
	stats := w.Server.Stats()
	t.Logf("%d machines for %d claims: Azure accepted %d, %d of which failed after they were granted; beyond the limits were %d requests",
		len(machines), claims, stats["vm.accepted"], late, w.refusals())
}

// claimAll launches machines in parallel, each as often as it takes.
func (w *world) claimAll(t *testing.T, n int, prefix string) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("%s%04d", prefix, i)
			var last error
			for range 20 { // as the claim's controller does
				if _, last = w.provider.Launch(t.Context(), w.order(name, onDemand(), sizes("Standard_D2s_v5", "Standard_D4s_v4"))); last == nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
			t.Errorf("NodeClaim %s got no machine: %v", name, last)
		})
	}
	wg.Wait()
}
