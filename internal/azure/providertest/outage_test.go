package providertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/ratelimit"
)

// counted counts the answers of one kind to one client.
type counted struct {
	http.RoundTripper
	refused atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests {
		c.refused.Add(1)
	}
	return answer, err
}

// others write four times a second, as another client of the subscription.
func (w *world) others(ctx context.Context, t *testing.T, through http.RoundTripper) {
	t.Helper()
	token, err := w.Credential.GetToken(ctx, policy.TokenRequestOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, armtest.Endpoint+"/subscriptions/"+w.SubscriptionID+"/resourceGroups/"+w.NodeResourceGroup+
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

func TestAfterARestartAmidABurstAzuresLimitsStillHold(t *testing.T) {
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

func TestWhatOthersOfTheSubscriptionUseUpIsNoticedInTime(t *testing.T) {
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

func TestTrap17RetryAfterIsHonouredByEveryRequestOfTheSameKind(t *testing.T) {
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

func TestAnOutageStopsLaunchesAndItsEndResumesThemWithNothingLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultOutage})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-first", onDemand())); err == nil {
			t.Fatal("a machine was bought although Azure is out")
		}
		if out := w.provider.Outage(); !strings.Contains(out, "Microsoft.Compute (reads) has failed since") {
			t.Errorf("the provider says of the outage %q", out)
		}
		calls := w.Server.Stats()["calls Microsoft.Compute/virtualMachines/read"]
		refused := 0
		begin := time.Now()
		for range 100 { // claims come and are tried again
			_, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand()))
			var outage *ratelimit.Outage
			if errors.As(err, &outage) {
				refused++
			}
			time.Sleep(time.Second)
		}
		if refused < 90 {
			t.Errorf("of 100 launches %d were refused without asking Azure in %s, want nearly all", refused, time.Since(begin))
		}
		t.Logf("during %s of outage Azure was asked %d times", time.Since(begin), w.Server.Stats()["calls Microsoft.Compute/virtualMachines/read"]-calls)
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		for time.Since(begin) < time.Minute {
			if _, err = w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err == nil {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(begin); err != nil || took > 30*time.Second || w.provider.Outage() != "" {
			t.Errorf("after the outage: launched after %s with %v, outage %q; want within 30s and none", took, err, w.provider.Outage())
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestAnOutageThatNobodyMeetsAgainIsForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultOutage, Operation: "Microsoft.Network/*/write", Duration: 2 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err == nil {
			t.Fatal("a machine was bought although Azure is out")
		}
		if w.provider.Outage() == "" {
			t.Fatal("the outage was not noticed")
		}
		time.Sleep(6 * time.Minute)
		if out := w.provider.Outage(); out != "" {
			t.Errorf("with nobody launching the condition stays: %s", out)
		}
	})
}

func TestSingleFailuresAreNoOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Rate: 0.3, Status: http.StatusServiceUnavailable}); err != nil {
			t.Fatal(err)
		}
		w.claimAll(t, 50, "general-") // now and then all of a request's tries fail
		if out := w.provider.Outage(); out != "" {
			t.Errorf("three requests of ten fail and it is called an outage: %s", out)
		}
		for _, f := range w.Server.Faults() {
			if err := w.Server.RemoveFault(f.ID); err != nil {
				t.Fatal(err)
			}
		}
		w.deleteAll(t)
	}, armtest.Realistic)
}
