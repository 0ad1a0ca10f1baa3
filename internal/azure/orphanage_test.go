package azure

import (
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// A machine of which Azure does not say when it was made may have been made just now.
func TestMachineOfUnknownAgeIsYoungAtFirst(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := &collector{now: func() time.Time { return now }}
	m := launch.Machine{Claim: "general-aaaaa", State: launch.Succeeded}
	if c.settled(m) {
		t.Error("it would be removed as soon as it is seen")
	}
	now = now.Add(orphanAge)
	if !c.settled(m) {
		t.Errorf("it is not removed after %s", orphanAge)
	}
	c.forgetAgeless(nil)
	if c.settled(m) {
		t.Error("one that was gone, and is there again, counts as old")
	}
}
