package providertest

import (
	"errors"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// At the limit of a quota a machine can be replaced as soon as the old one is gone, and not when
// the figures of the quota are read the next time by the clock.
func TestQuotaOfDeletedMachineIsBoughtAgainSoon(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		order := func(claim string) error {
			_, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand()))
			return err
		}
		if err := order("general-aaaaa"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Minute)
		for !errors.Is(w.provider.Delete(t.Context(), "general-aaaaa", ""), launch.ErrNotFound) {
			time.Sleep(5 * time.Second)
		}
		gone := time.Now()
		for order("general-bbbbb") != nil && time.Since(gone) < 10*time.Minute {
			time.Sleep(5 * time.Second)
		}
		if waited := time.Since(gone); waited > 2*time.Minute {
			t.Errorf("the next machine was bought %s after the last one had gone, want at most two minutes", waited)
		}
	}, armtest.Realistic, func(c *armsim.Config) { c.Quota = map[string]int64{"standardDSv5Family": 4} })
}
