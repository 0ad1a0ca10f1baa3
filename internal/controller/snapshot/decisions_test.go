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
