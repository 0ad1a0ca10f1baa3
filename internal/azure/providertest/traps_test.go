package providertest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
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

// The simulated Azure has placement scores of its own for every size and zone; a
// fault makes those of two zones low.
func TestTrap11OfZonesThatCostTheSameTheLikelierOneIsAskedForFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.PlacementScores = true
		w.start(t)
		var faults []string
		for _, zone := range []string{"1", "3"} {
			f, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_D8s_v5", Zone: zone, Priority: "Spot"})
			if err != nil {
				t.Fatal(err)
			}
			faults = append(faults, f.ID)
		}
		for _, claim := range []string{"general-a", "general-b", "general-c", "general-d"} {
			m, err := w.provider.Launch(t.Context(), w.order(claim, spot(), sizes("Standard_D8s_v5")))
			if err != nil {
				t.Fatal(err)
			}
			if m.Zone != "2" {
				t.Errorf("%s was bought in zone %s, want zone 2, where machines are likely to be placed", claim, m.Zone)
			}
		}
		stats := w.Server.Stats()
		if n := stats["errors OverconstrainedZonalAllocationRequest"] + stats["errors ZonalAllocationFailed"] + stats["errors SkuNotAvailable"]; n != 0 {
			t.Errorf("%d purchases were refused, want none: %v", n, stats)
		}
		if n := stats["calls Microsoft.Compute/locations/placementScores/generate/action"]; n != 1 {
			t.Errorf("Azure was asked %d times for scores, want once in ten minutes", n)
		}
		for _, id := range faults {
			if err := w.Server.RemoveFault(id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		seen := map[string]bool{}
		for i := range 12 {
			m, err := w.provider.Launch(t.Context(), w.order("later-"+string(rune('a'+i)), spot(), sizes("Standard_D8s_v5")))
			if err != nil {
				t.Fatal(err)
			}
			seen[m.Zone] = true
		}
		t.Logf("an hour after the shortage machines go to %v", seen)
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestWithoutScoresPurchasesGoOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.PlacementScores = true
		w.start(t)
		if _, err := w.Server.AddFault(refusal("Microsoft.Compute/locations/placementScores/generate/action", http.StatusForbidden, "AuthorizationFailed")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for _, claim := range []string{"general-a", "general-b"} {
			if _, err := w.provider.Launch(t.Context(), w.order(claim, spot(), sizes("Standard_D8s_v5"))); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("two purchases took %v", took)
		}
		w.deleteAll(t)
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

// answerWith is an answer to a request.
func answerWith(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

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
		if kind := w.reported("standalone"); kind != unavailable.OverconstrainedZonal {
			t.Errorf("two minutes after the launch the claim has heard %q, want %s", kind, unavailable.OverconstrainedZonal)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}
