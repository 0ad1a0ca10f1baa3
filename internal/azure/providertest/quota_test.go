package providertest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestUsagesRefreshIntervalAndExpiry(t *testing.T) {
	const usages = "Microsoft.Compute/locations/usages/read"
	inWorld(t, func(t *testing.T, w *world) {
		reads := func() int64 { return w.Server.Stats()["calls "+usages] }
		before := reads()
		time.Sleep(time.Hour + time.Minute)
		if n := reads() - before; n != 6 {
			t.Errorf("read %d times in an hour, want 6", n)
		}
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultError, Operation: usages, Status: http.StatusForbidden, Code: "AuthorizationFailed",
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(13 * time.Minute) // the last answer is a minute old by then
		if len(w.provider.MarketFacts().Quotas) == 0 {
			t.Error("figures of fourteen minutes ago are not believed")
		}
		time.Sleep(2 * time.Minute)
		if n := len(w.provider.MarketFacts().Quotas); n != 0 {
			t.Errorf("%d figures of sixteen minutes ago are believed", n)
		}
	})
}

func TestTrap3QuotasMaskOfferingsBeforeRequest(t *testing.T) {
	for name, row := range map[string]struct {
		quota map[string]int64
		left  string // the one capacity type that can be bought
	}{
		"family":        {map[string]int64{"standardDSv5Family": 3}, "spot"},
		"region":        {map[string]int64{"cores": 3}, "spot"},
		"spot":          {map[string]int64{"lowPriorityCores": 3}, "on-demand"},
		"spot and none": {map[string]int64{"lowPriorityCores": 3, "cores": 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for _, capacityType := range []string{"on-demand", "spot"} {
					want := model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{capacityType}}
					_, err := w.provider.Launch(t.Context(), w.order("general-"+capacityType[:2], sizes("Standard_D4s_v5"), want))
					if bought := err == nil; bought != (capacityType == row.left) {
						t.Errorf("%s: %v, want only %q to be bought", capacityType, err, row.left)
					}
					if err != nil && (!errors.Is(err, launch.ErrNoCandidate) || !strings.Contains(err.Error(), "quota")) {
						t.Errorf("%s: %v, want the quota named before Azure is asked", capacityType, err)
					}
				}
				if n := w.Server.Stats()["errors OperationNotAllowed"]; n != 0 {
					t.Errorf("Azure refused %d machines, want none asked for that do not fit", n)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, func(c *armsim.Config) { c.Quota = row.quota })
		})
	}
}

func TestTrap4BurstStaysWithinQuotaDespiteUsageLag(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { // usages lag by a minute here
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				order := w.order(fmt.Sprintf("general-%02d", i), sizes("Standard_D4s_v4", "Standard_D4s_v5"), onDemand())
				if _, err := w.provider.Launch(t.Context(), order); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		machines, err := w.provider.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, m := range machines {
			count[m.Size]++
		}
		if count["Standard_D4s_v4"] != 5 || count["Standard_D4s_v5"] != 5 {
			t.Errorf("bought are %v, want as many of the first family as fit, and the rest of the other", count)
		}
		if n := w.Server.Stats()["errors OperationNotAllowed"]; n != 0 {
			t.Errorf("Azure refused %d machines of the burst, want none", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Quota = map[string]int64{"standardDSv4Family": 20} })
}

// A machine that fails after its launch has returned gives its quota back once it is
// removed, whether or not its NodeClaim is deleted.
func TestQuotaOfLateFailureIsFreeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultFail, Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity.", Zone: "1",
		}); err != nil {
			t.Fatal(err)
		}
		buy := func(claim, zone string) error {
			_, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand(), zones(zone)))
			return err
		}
		if err := buy("general-a", "eastus-1"); err != nil {
			t.Fatal(err)
		}
		if err := buy("general-b", "eastus-2"); !errors.Is(err, launch.ErrNoCandidate) {
			t.Errorf("%v, want no quota beside the first machine", err)
		}
		time.Sleep(3 * time.Minute) // it fails after one
		if kind := w.reported("general-a"); kind != unavailable.OverconstrainedZonal {
			t.Fatalf("the first claim has heard %q", kind)
		}
		if err := buy("general-b", "eastus-2"); err != nil {
			t.Errorf("after the first machine is gone: %v", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) {
		c.Latency.VMFail = armsim.Distribution{Median: time.Minute}
		c.Quota = map[string]int64{"standardDSv5Family": 4}
	})
}
