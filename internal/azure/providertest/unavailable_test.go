package providertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

func TestTrap18RefusedZoneKeepsOfferingWithExpiry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5",
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.provider.Launch(t.Context(),
			w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1"))); err == nil {
			t.Fatal("it was bought")
		}
		until := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04") // to the minute
		seen := map[string]bool{}
		for _, o := range w.sold("Standard_D4s_v5").Offerings {
			seen[o.Zone] = true
			refused := o.Zone == "eastus-1"
			if o.Available == refused || refused &&
				(!strings.Contains(o.Unavailable, "ZonalAllocationFailed") || !strings.Contains(o.Unavailable, until)) {
				t.Errorf("%s in %s: available %t, %q; want the refused zone alone not to be, until %s",
					o.CapacityType, o.Zone, o.Available, o.Unavailable, until)
			}
		}
		if len(seen) != 4 {
			t.Errorf("the size is offered in %v, want three zones and the region", seen)
		}
	})
}

func TestTrap19LargerSizeLaunchesMinutesAfterRefusal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5",
		}); err != nil {
			t.Fatal(err)
		}
		buy := func(claim, size string) error {
			_, err := w.provider.Launch(t.Context(), w.order(claim, sizes(size), onDemand(), zones("eastus-1")))
			return err
		}
		if err := buy("general-small", "Standard_D4s_v5"); err == nil {
			t.Fatal("it was bought")
		}
		if err := buy("general-large", "Standard_D8s_v5"); !errors.Is(err, launch.ErrNoCandidate) {
			t.Errorf("right after, a larger size: %v, want that it is not asked for", err)
		}
		time.Sleep(3 * time.Minute)
		if err := buy("general-large", "Standard_D8s_v5"); err != nil {
			t.Errorf("three minutes later, a larger size: %v", err)
		}
		if err := buy("general-small", "Standard_D4s_v5"); !errors.Is(err, launch.ErrNoCandidate) {
			t.Errorf("three minutes later, the refused size: %v, want that it is not asked for", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// The simulated Azure answers without delay here, so that what a launch takes is
// nap's own doing: the difference between a launch that meets a failure and one
// that meets none is what the retry adds.
func TestTrap24CapacityFailureRetriedInSameLaunch(t *testing.T) {
	for name, kind := range map[string]armsim.FaultKind{
		"refused at once": armsim.FaultCapacity, "accepted and failed later": armsim.FaultFail,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				timed := func(claim, want string) time.Duration {
					t.Helper()
					begin := time.Now()
					m, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1")))
					if err != nil {
						t.Fatal(err)
					}
					// Both cost the same, so the name decides which comes first.
					if m.Size != want {
						t.Errorf("bought %s, want %s", m.Size, want)
					}
					return time.Since(begin)
				}
				plain := timed("general-plain", "Standard_D4s_v4")
				if _, err := w.Server.AddFault(armsim.Fault{
					Kind: kind, Code: "ZonalAllocationFailed", Message: "No capacity.", Size: "Standard_D4s_v4",
				}); err != nil {
					t.Fatal(err)
				}
				added := timed("general-abc12", "Standard_D4s_v5") - plain
				if n := w.Server.Faults()[0].Hits; n != 1 {
					t.Errorf("the first choice was refused %d times, want once", n)
				}
				t.Logf("a launch takes %v, one with a failure %v longer", plain, added)
				if added >= 2*time.Second {
					t.Errorf("the retry adds %v, want less than 2s", added)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			})
		})
	}
}
