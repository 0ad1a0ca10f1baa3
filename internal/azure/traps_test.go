package azure_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/scarcity"
)

func TestTrap10AMachineOfAClaimWithoutAPoolIsListedAndCollected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		order := w.order("standalone", onDemand())
		order.Pool = ""
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		machines, err := w.provider.List(t.Context())
		if err != nil || len(machines) != 1 || machines[0].Claim != "standalone" {
			t.Fatalf("listed are %+v, %v; want the machine of the claim", machines, err)
		}
		time.Sleep(6 * time.Minute)
		removed, err := w.provider.CollectMachines(t.Context(), noClaims)
		if err != nil || len(removed) != 1 {
			t.Errorf("collected are %v, %v; want the one machine", removed, err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestTrap16ANewLoadBalancerIsNoticedWithinMinutes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		asked := 0
		plain := w.HTTP.Transport
		w.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(strings.ToLower(r.URL.Path), "/loadbalancers") {
				asked++
			}
			return plain.RoundTrip(r)
		})}
		w.start(t)
		for i, want := range []int{1, 1, 2} { // the third comes six minutes after the first
			if _, err := w.provider.Launch(t.Context(), w.order("general-"+string(rune('a'+i)), onDemand())); err != nil {
				t.Fatal(err)
			}
			if asked != want {
				t.Errorf("at launch %d the load balancers had been listed %d times, want %d", i+1, asked, want)
			}
			time.Sleep(3 * time.Minute)
		}
		w.deleteAll(t)
	})
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTrap26AMachineIsListedFromItsFirstMomentThoughResourceGraphIsLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		if machines, err := w.provider.List(t.Context()); err != nil || len(machines) != 1 {
			t.Errorf("listed right after the launch are %+v, %v; want one machine", machines, err)
		}
		w.deleteAll(t)
	}, func(c *armsim.Config) { c.GraphLag = time.Hour })
}

func TestTrap27AClaimWithoutAPoolHearsOfALateFailureAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultFail, Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity."}); err != nil {
			t.Fatal(err)
		}
		order := w.order("standalone", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1"))
		order.Pool = ""
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		w.mu.Lock()
		kind := w.failed["standalone"]
		w.mu.Unlock()
		if kind != scarcity.OverconstrainedZonal {
			t.Errorf("two minutes after the launch the claim has heard %q, want %s", kind, scarcity.OverconstrainedZonal)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}
