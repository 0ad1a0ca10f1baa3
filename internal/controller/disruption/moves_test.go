package disruption

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// A move says what it waits for although its replacements are there.
func TestMoveSaysWhatItWaitsFor(t *testing.T) {
	c := &command{}
	c.waits = "PodDisruptionBudget shop/web allows no eviction"
	if got := moveOf(c); got.Stage != stageReplacing || got.Why != c.waits {
		t.Errorf("got %+v", got)
	}
	if c.drain = (&drain{}); moveOf(c).Why != "" {
		t.Errorf("it drains, and says that it waits: %+v", moveOf(c))
	}
}

// A replacement does not stand idle for a budget whose schedule has hours to go.
func TestCommandWaitsOnlyForWhatPassesInTime(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	in := now.Add
	for name, c := range map[string]struct {
		found   consolidate.Objection
		patient time.Time
		want    bool
	}{
		"any moment":         {consolidate.Objection{Passing: true}, in(time.Minute), true},
		"soon":               {consolidate.Objection{Passing: true, Until: in(time.Minute)}, in(time.Minute), true},
		"in hours":           {consolidate.Objection{Passing: true, Until: in(time.Hour)}, in(time.Minute), false},
		"never":              {consolidate.Objection{}, in(time.Minute), false},
		"it has waited long": {consolidate.Objection{Passing: true}, in(-time.Second), false},
	} {
		if got := passing([]consolidate.Objection{c.found}, now, c.patient); got != c.want {
			t.Errorf("%s: waits %t, want %t", name, got, c.want)
		}
	}
}
