package disruption

import (
	"testing"
	"time"
)

// A decision that took half a minute once stopped all others for five.
func TestPauseAfterSlowDecisionIsBounded(t *testing.T) {
	observed := func() bool { return true }
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond:        decideAtAll,
		1500 * time.Millisecond: 15 * time.Second,
		30 * time.Second:        pauseAtMost,
		time.Hour:               pauseAtMost,
	} {
		var p pacing
		end := time.Unix(1_700_000_000, 0)
		p.decided(decision{at: end, took: took, revision: 1})
		due := time.Duration(0)
		for ; due < time.Hour && !p.due(end.Add(due), 1, observed); due += 500 * time.Millisecond {
		}
		if due != want {
			t.Errorf("a decision took %s: the next one is due after %s, want %s", took, due, want)
		}
	}
}
