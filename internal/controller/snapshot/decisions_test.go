package snapshot

import (
	"strconv"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// What a plan costs is a number as that of a NodePool is, without sign or unit: readers add
// them up.
func TestCostOfLastPlanIsANumber(t *testing.T) {
	d := &Decisions{}
	d.Decided(Decision{Plan: "p", At: time.Unix(0, 0), Pods: 2, NewNodes: 1, Cost: model.USD(0.876)})
	var doc Document
	d.fill(&doc, fleet.NewStore().Snapshot())
	if got, err := strconv.ParseFloat(doc.Status.LastPlan.HourlyCost, 64); err != nil || got != 0.876 {
		t.Errorf("the last plan costs %q, want 0.876", doc.Status.LastPlan.HourlyCost)
	}
}

// After a restart a limit that was reached stays told until a round has looked at what waits:
// one that was closed by an outage has not, one that found nothing has.
func TestLimitsAreKnownOnceARoundHasLookedAtWhatWaits(t *testing.T) {
	d, now := &Decisions{}, fleet.NewStore().Snapshot
	want := func(when string, want bool) {
		t.Helper()
		if reached, known := d.LimitsReached(now); known != want || len(reached) > 0 {
			t.Errorf("%s: %v is reached, known: %t, want %t", when, reached, known, want)
		}
	}
	want("before any round", false)
	d.Decided(Decision{})
	want("nothing could be bought", false)
	d.Decided(Decision{NothingWaits: true})
	want("nothing waits", true)
	d.Decided(Decision{})
	want("nothing can be bought any more", true)
}
