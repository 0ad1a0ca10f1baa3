package providertest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// behind is an Azure that does not know, for a while, what it has just accepted.
type behind struct {
	http.RoundTripper
	lag time.Duration

	mu   sync.Mutex
	made map[string]time.Time
}

func (b *behind) RoundTrip(r *http.Request) (*http.Response, error) {
	const vms, machines = "/Microsoft.Compute/virtualMachines/", "/machines/"
	if !strings.Contains(r.URL.Path, vms) && !strings.Contains(r.URL.Path, machines) {
		return b.RoundTripper.RoundTrip(r)
	}
	b.mu.Lock()
	since, known := b.made[r.URL.Path]
	b.mu.Unlock()
	if r.Method == http.MethodGet && known && time.Since(since) < b.lag {
		return &http.Response{
			StatusCode: http.StatusNotFound, Status: "404 Not Found", Header: http.Header{}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"error": {"code": "ResourceNotFound", "message": "It was not found."}}`)),
		}, nil
	}
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && answer.StatusCode == http.StatusCreated && !known {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.made[r.URL.Path] = time.Now()
	}
	return answer, err
}

func TestNotFoundRightAfterCreateIsNotTakenAsGone(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.HTTP = &http.Client{Transport: &behind{RoundTripper: w.HTTP.Transport, lag: 4 * time.Second, made: map[string]time.Time{}}}
				w.restartAs(t, mode)
				m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
				if err != nil || !strings.Contains(m.ProviderID, "general-abc12") {
					t.Fatalf("bought %+v, %v; want the machine that Azure has accepted", m, err)
				}
				time.Sleep(5 * time.Minute)
				if kind := w.reported("general-abc12"); kind != "" {
					t.Errorf("it is reported as failed: %s", kind)
				}
				if n := w.Server.Stats()["vm.accepted"]; n != 1 {
					t.Errorf("Azure was asked for %d machines, want one", n)
				}
				if got := w.claimsListed(t); got != "general-abc12" {
					t.Errorf("the cluster has machines of %q", got)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

func TestFailureWhileStoppedBlocksOfferingAfterRestart(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restartAs(t, mode)
				if _, err := w.Server.AddFault(armsim.Fault{
					Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v4",
				}); err != nil {
					t.Fatal(err)
				}
				order := w.order("general-abc12", sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1"))
				if m, err := w.provider.Launch(t.Context(), order); err != nil || m.Size != "Standard_D4s_v4" {
					t.Fatalf("bought %+v, %v; want the first choice on its way", m, err)
				}
				w.stop()
				time.Sleep(5 * time.Minute)
				w.start(t)
				if m, err := w.provider.Launch(t.Context(), order); err != nil || m.Size != "Standard_D4s_v5" {
					t.Errorf("the next process bought %+v, %v; want the second choice", m, err)
				}
				if n := w.Server.Faults()[0].Hits; n != 1 {
					t.Errorf("the first choice was refused %d times, want once", n)
				}
				time.Sleep(5 * time.Minute)
				if kind := w.reported("general-abc12"); kind != "" {
					t.Errorf("the claim, which has its machine, is reported as failed: %s", kind)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
		})
	}
}
