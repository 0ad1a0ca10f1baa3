package providertest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// While leadership changes hands two processes can buy for the same claims.
func TestTwoProcessesLaunchOneMachinePerClaim(t *testing.T) {
	const claims = 20
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restartAs(t, mode)
				stopFirst, processes := w.stop, []*azure.Provider{w.provider}
				w.start(t)
				stopSecond := w.stop
				w.stop = func() { stopFirst(); stopSecond() }
				processes = append(processes, w.provider)
				bought := make([][]launch.Machine, len(processes))
				var wg sync.WaitGroup
				for i, p := range processes {
					bought[i] = make([]launch.Machine, claims)
					for c := range claims {
						wg.Go(func() {
							var err error
							// They may choose differently: each has its own order of sizes.
							size := sizes([]string{"Standard_D4s_v5", "Standard_D8s_v5"}[i])
							if bought[i][c], err = p.Launch(t.Context(), w.order(fmt.Sprintf("general-%02d", c), size, onDemand())); err != nil {
								t.Errorf("process %d, claim %d: %v", i, c, err)
							}
						})
					}
				}
				wg.Wait()
				for c := range claims {
					if one, two := bought[0][c], bought[1][c]; one.ProviderID != two.ProviderID || one.Size != two.Size {
						t.Errorf("claim %d has %s %s for one process and %s %s for the other", c, one.ProviderID, one.Size, two.ProviderID, two.Size)
					}
				}
				if n := w.Server.Stats()["vm.accepted"]; n != claims {
					t.Errorf("%d machines were bought for %d claims", n, claims)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}
