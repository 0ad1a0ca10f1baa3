package providertest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// Of a launch that meets a failure of capacity after Azure has accepted it, Azure's
// own are the time that it takes to find out, and to delete the machine that it did
// not make. The rest, between these and to the next request, is nap's.
func TestTrap24OfARetryAfterALateRefusalLittleIsNapsOwn(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		for _, deletion := range []time.Duration{1300 * time.Millisecond, 10 * time.Second, 35 * time.Second, time.Minute} {
			t.Run(mode+" "+deletion.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.restartAs(t, mode)
					if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v4"}); err != nil {
						t.Fatal(err)
					}
					m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1")))
					if err != nil || m.Size != "Standard_D4s_v5" {
						t.Fatalf("bought %+v, %v; want the second choice", m, err)
					}
					at := map[string]time.Time{}
					for _, e := range w.Server.Audit(0) {
						at[e.Action] = e.Time // of the requests for machines the last, which is the second
					}
					if at["vm.failed"].IsZero() || at["vm.deleting"].IsZero() || at["vm.deleted"].IsZero() {
						t.Fatalf("the first choice has not failed and been deleted: %v", at)
					}
					added := at["vm.deleting"].Sub(at["vm.failed"]) + at["vm.accepted"].Sub(at["vm.deleted"])
					t.Logf("nap adds %v", added)
					if added >= 2*time.Second {
						t.Errorf("nap adds %v to what Azure takes, want less than 2s", added)
					}
					w.deleteAll(t)
					w.noLeaks(t)
				}, func(c *armsim.Config) {
					c.Limits = nil // Azure's published ones
					c.Latency.VMFail.Median, c.Latency.VMDelete.Median = 6100*time.Millisecond, deletion
				})
			})
		}
	}
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

func TestADeletionWhoseOperationHangsOrIsNotKnownIsNoticedAllTheSame(t *testing.T) {
	for name, answers := range map[string]operations{
		"it never ends":      {status: http.StatusOK, body: `{"status": "InProgress"}`},
		"it is not known":    {status: http.StatusNotFound, body: `{"error": {"code": "NotFound", "message": "The entity was not found."}}`},
		"it is said to fail": {status: http.StatusOK, body: `{"status": "Failed", "error": {"code": "InternalOperationError", "message": "It failed."}}`},
		"it talks nonsense":  {status: http.StatusOK, body: `<html>`},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				answers.RoundTripper = w.HTTP.Transport
				w.HTTP = &http.Client{Transport: answers}
				w.restartAs(t, config.ModeVMs)
				if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v4"}); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1")))
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
