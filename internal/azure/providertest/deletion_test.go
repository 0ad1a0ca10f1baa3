package providertest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// forced counts the deletions of virtual machines, and those that do not wait for
// the system to shut down.
type forced struct {
	http.RoundTripper
	all, force atomic.Int64
}

func (f *forced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/virtualMachines/") {
		f.all.Add(1)
		if r.URL.Query().Get("forceDeletion") == "true" {
			f.force.Add(1)
		}
	}
	return f.RoundTripper.RoundTrip(r)
}

func TestVMDeleteIsForced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		counted := &forced{RoundTripper: w.HTTP.Transport}
		w.HTTP = &http.Client{Transport: counted}
		w.restartAs(t, config.ModeVMs)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"))); err != nil {
			t.Fatal(err)
		}
		w.deleteAll(t)
		if all, force := counted.all.Load(), counted.force.Load(); all == 0 || force != all {
			t.Errorf("%d of %d deletions are forced, want all", force, all)
		}
		w.noLeaks(t)
	})
}

// operations answers every question about an operation of compute by itself.
type operations struct {
	http.RoundTripper
	status int
	body   string
}

func (o operations) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/Microsoft.Compute/locations/") || !strings.Contains(r.URL.Path, "/operations/") {
		return o.RoundTripper.RoundTrip(r)
	}
	return &http.Response{
		StatusCode: o.status, Status: http.StatusText(o.status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(o.body)), Request: r,
	}, nil
}

func TestDeleteWithBrokenOperationStatus(t *testing.T) {
	for name, answers := range map[string]operations{
		"it never ends":   {status: http.StatusOK, body: `{"status": "InProgress"}`},
		"it is not known": {status: http.StatusNotFound, body: `{"error": {"code": "NotFound", "message": "The entity was not found."}}`},
		"it is said to fail": {
			status: http.StatusOK, body: `{"status": "Failed", "error": {"code": "InternalOperationError", "message": "It failed."}}`,
		},
		"it talks nonsense": {status: http.StatusOK, body: `<html>`},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				answers.RoundTripper = w.HTTP.Transport
				w.HTTP = &http.Client{Transport: answers}
				w.restartAs(t, config.ModeVMs)
				if _, err := w.Server.AddFault(armsim.Fault{
					Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v4",
				}); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				m, err := w.provider.Launch(t.Context(),
					w.order("general-abc12", sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1")))
				if err != nil || m.Size != "Standard_D4s_v5" {
					t.Fatalf("bought %+v, %v; want the second choice", m, err)
				}
				if took := time.Since(begin); took > 40*time.Second {
					t.Errorf("it took %v, of which Azure's deletion is 20s", took)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, func(c *armsim.Config) { c.Latency.VMDelete.Median = 20 * time.Second })
		})
	}
}

// What nap takes back itself while Azure makes it is no refusal of Azure's: it is reported to no
// claim, rests no offering, and leaves the quota as it was.
func TestOwnDeletionIsNoRefusalOfAzure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 3 { // so many of a kind in a row rest an offering
			claim := fmt.Sprintf("general-ab%03d", i)
			m, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
			if err != nil || m.State != launch.Creating {
				t.Fatalf("machine %d: %+v, %v; want one on its way", i, m, err)
			}
			for !errors.Is(err, launch.ErrNotFound) {
				if err = w.provider.Delete(t.Context(), claim, ""); err != nil && !errors.Is(err, launch.ErrNotFound) {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
			}
		}
		if len(w.failed) > 0 || len(w.blocked("Standard_D4s_v5")) > 0 {
			t.Errorf("reported %v, blocked %v, want neither", w.failed, w.blocked("Standard_D4s_v5"))
		}
		for _, q := range w.provider.MarketFacts().Quotas {
			if q.InFlight != 0 {
				t.Errorf("still on its way: %+v", q)
			}
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}
