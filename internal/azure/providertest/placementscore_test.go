package providertest

import (
	"net/http"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// The simulated Azure has placement scores of its own for every size and zone; a
// fault makes those of two zones low.
func TestTrap11EqualPriceZonesRankedByPlacementScore(t *testing.T) {
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
		if n := stats["errors OverconstrainedZonalAllocationRequest"] +
			stats["errors ZonalAllocationFailed"] + stats["errors SkuNotAvailable"]; n != 0 {
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

func TestLaunchWithoutPlacementScores(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.PlacementScores = true
		w.start(t)
		if _, err := w.Server.AddFault(
			refusal("Microsoft.Compute/locations/placementScores/generate/action", http.StatusForbidden, "AuthorizationFailed")); err != nil {
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
