package providertest

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func TestOutageStopsLaunchesUntilItEnds(t *testing.T) {
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
		t.Logf("during %s of outage Azure was asked %d times", time.Since(begin),
			w.Server.Stats()["calls Microsoft.Compute/virtualMachines/read"]-calls)
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

func TestOutageExpiresWithoutFurtherFailures(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultOutage, Operation: "Microsoft.Network/*/write", Duration: 2 * time.Minute,
		}); err != nil {
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

func TestOutageNotDeclaredForSingleFailures(t *testing.T) {
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
