package azure_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestEveryClaimGetsOneMachineThoughAzureStumbles(t *testing.T) {
	const claims = 100
	inWorld(t, func(t *testing.T, w *world) {
		for _, f := range []armsim.Fault{
			{Kind: armsim.FaultThrottle, Rate: 0.1, RetryAfter: 2 * time.Second},
			{Kind: armsim.FaultError, Rate: 0.1, Status: http.StatusInternalServerError, Code: "InternalServerError"},
			{Kind: armsim.FaultError, Rate: 0.05, Status: http.StatusBadGateway},
			{Kind: armsim.FaultHang, Rate: 0.05, Operation: "Microsoft.Compute/virtualMachines/write"},
			{Kind: armsim.FaultFail, Rate: 0.1, Code: "ZonalAllocationFailed", Message: "No capacity.", Size: "Standard_D2s_v5"},
		} {
			if _, err := w.Server.AddFault(f); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for i := range claims {
			wg.Go(func() {
				name := fmt.Sprintf("general-%03d", i)
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
		time.Sleep(5 * time.Minute)
		for _, f := range w.Server.Faults() {
			if err := w.Server.RemoveFault(f.ID); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Minute)
		machines, err := w.provider.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		late := len(w.failed)
		w.mu.Unlock()
		if len(machines)+late != claims {
			t.Errorf("%d machines run and %d failed late, want %d together", len(machines), late, claims)
		}
		w.deleteAll(t)
		time.Sleep(10 * time.Minute)
		if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
		stats := w.Server.Stats()
		t.Logf("accepted %d, late %d, throttled by limits: reads %d, writes %d", stats["vm.accepted"], late, stats["throttled reads"], stats["throttled writes"])
	}, armtest.Realistic)
}
