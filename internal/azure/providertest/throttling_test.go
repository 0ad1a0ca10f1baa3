package providertest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// others write four times a second, as another client of the subscription.
func (w *world) others(ctx context.Context, t *testing.T, through http.RoundTripper) {
	t.Helper()
	token, err := w.Credential.GetToken(ctx, policy.TokenRequestOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut,
			armtest.Endpoint+"/subscriptions/"+w.SubscriptionID+"/resourceGroups/"+w.NodeResourceGroup+
				"/providers/Microsoft.Compute/disks/other?api-version=2025-01-02", strings.NewReader(`{"location": "eastus"}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+token.Token)
		if answer, err := through.RoundTrip(r); err == nil {
			answer.Body.Close()
		}
		time.Sleep(time.Second / 4)
	}
}

func TestRateLimitsHoldForThreeHundredParallelLaunches(t *testing.T) {
	const machines = 300 // Azure grants 200 writes in a burst
	inWorld(t, func(t *testing.T, w *world) {
		took := w.launchAll(t, machines)
		time.Sleep(5 * time.Minute) // billing extensions, the last polls
		if n := w.refusals(); n != 0 {
			t.Errorf("Azure refused %d requests for their rate, want none: %v", n, w.Server.Stats())
		}
		if n := w.Server.Stats()["vm.accepted"]; n != machines {
			t.Errorf("Azure accepted %d machines, want %d", n, machines)
		}
		t.Logf("simulated time until launched: half %s, all %s", took[machines/2], took[machines-1])
		w.deleteAll(t)
		if n := w.refusals(); n != 0 {
			t.Errorf("with the deletions Azure refused %d requests for their rate, want none: %v", n, w.Server.Stats())
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestRateLimitsHoldAfterRestartDuringBurst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.launchAll(t, 150) // leaves next to nothing of the budget
		before := w.refusals()
		w.stop()
		w.start(t)
		for _, m := range w.launchAll(t, 250)[249:] {
			t.Logf("all launched after %s", m)
		}
		if n := w.refusals(); n != 0 {
			t.Errorf("Azure refused %d requests before and %d after the restart, want none", before, n-before)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestRateLimitFollowsUseByOtherClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		plain := w.HTTP.Transport
		own := &counted{RoundTripper: plain}
		w.HTTP = &http.Client{Transport: own}
		w.start(t)
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		defer others.Wait()
		defer cancel()
		others.Go(func() { w.others(ctx, t, plain) })
		took := w.launchAll(t, 200)
		t.Logf("all launched after %s", took[199])
		// A burst empties the budget just as the others write; from then on the
		// headers say how much there is.
		if n := own.refused.Load(); n > 4 {
			t.Errorf("Azure refused %d requests for their rate, want at most 4", n)
		}
		w.deleteAll(t)
	}, armtest.Realistic)
}

func TestTrap17RetryAfterHoldsForRequestsOfSameKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const pause = 40 * time.Second
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultThrottle, Operation: "Microsoft.Network/networkInterfaces/write", RetryAfter: pause, Duration: time.Second,
		}); err != nil {
			t.Fatal(err)
		}
		took := w.launchAll(t, 20)
		hits := w.Server.Stats()["errors TooManyRequests"]
		if took[0] < pause || took[19] > pause+30*time.Second {
			t.Errorf("machines were launched after %s to %s, want all soon after %s", took[0], took[19], pause)
		}
		// Those that were on their way when the first refusal came are refused too.
		if hits == 0 || hits > 20 {
			t.Errorf("Azure refused %d requests, want at most one for each machine", hits)
		}
		w.deleteAll(t)
	})
}

// Azure holds the removal of one machine back for minutes: the next one gets what it lacks as
// ever.
func TestThrottledRemovalHoldsNoOtherLaunchUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, armsim.Fault{Kind: armsim.FaultFail, Resource: "aks-general-ccccc",
			Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity."})
		w.add(t, armsim.Fault{Kind: armsim.FaultThrottle, Operation: "Microsoft.Compute/virtualMachines/delete",
			RetryAfter: 8 * time.Minute, Duration: 10 * time.Minute})
		if _, err := w.provider.Launch(t.Context(), w.order("general-ccccc", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(70 * time.Second)
		if w.reported("general-ccccc") == "" {
			t.Fatal("the first machine has not failed")
		}
		w.buy(t)
		time.Sleep(time.Minute)
		if m, err := w.provider.Get(t.Context(), "general-abc12"); err != nil || m.Unfinished() {
			t.Errorf("a minute after its launch the machine lacks %v, %v", m.Missing, err)
		}
		time.Sleep(10 * time.Minute)
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}
