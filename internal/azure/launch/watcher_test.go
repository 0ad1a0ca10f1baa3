package launch

import (
	"testing"
	"testing/synctest"
	"time"
)

// Azure's lists lag: a machine that was missed, seen again and missed once more is not gone
// before it is missed for long enough from then on.
func TestMachineSeenAgainIsMissedFromThenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watcher{pending: map[string]*followed{}}
		f := &followed{machine: Machine{Claim: "general-a"}}
		w.judge(t.Context(), f, Machine{}, false)
		first := f.missing
		if first.IsZero() {
			t.Fatal("it is not known to be missed")
		}
		time.Sleep(MissingFor / 2)
		w.judge(t.Context(), f, Machine{}, false)
		if !f.missing.Equal(first) {
			t.Error("it is missed since the last look, not since the first")
		}
		w.judge(t.Context(), f, Machine{Claim: "general-a", State: Creating}, true)
		time.Sleep(MissingFor)
		w.judge(t.Context(), f, Machine{}, false)
		if !f.missing.Equal(time.Now()) {
			t.Errorf("it counts as missed since %s, want since now, %s", f.missing, time.Now())
		}
	})
}
