package cloudprovider

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

func TestMachineEndsWhenAzureSaysOrBetweenTwoAnswers(t *testing.T) {
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		answer error
		want   time.Duration
	}{
		"azure tells":             {fmt.Errorf("claim: %w", &launch.GoneError{At: at.Add(time.Second)}), time.Second},
		"azure tells nothing":     {launch.ErrNotFound, 2500 * time.Millisecond},
		"azure's clock is behind": {&launch.GoneError{At: at.Add(-time.Minute)}, 2500 * time.Millisecond},
		"azure's clock is ahead":  {&launch.GoneError{At: at.Add(time.Minute)}, 2500 * time.Millisecond},
	} {
		now, told := at, map[string]time.Duration{}
		d := &departures{now: func() time.Time { return now }, gone: func(claim string, went time.Time) { told[claim] = went.Sub(at) }}
		d.asked("b", launch.ErrNotFound) // it was never seen
		d.asked("a", nil)
		d.asked("a", errors.New("throttled"))
		now = now.Add(5 * time.Second)
		d.asked("a", c.answer)
		d.asked("a", c.answer)
		if len(told) != 1 || told["a"] != c.want {
			t.Errorf("%s: went at %v, want a at %s", name, told, c.want)
		}
	}
}

// What is not asked about any more is forgotten: Azure may never say that it went.
func TestDeletionIsForgottenAfterAnHour(t *testing.T) {
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	d := &departures{now: func() time.Time { return now }}
	d.asked("a", nil)
	now = now.Add(forgottenAfter)
	if d.asked("b", nil); len(d.there) != 2 {
		t.Errorf("after %s %v are remembered, want both", forgottenAfter, d.there)
	}
	now = now.Add(time.Second)
	if d.asked("b", nil); len(d.there) != 1 || d.there["b"].IsZero() {
		t.Errorf("a second later %v are remembered, want b alone", d.there)
	}
	if d.asked("b", launch.ErrNotFound); len(d.there) != 0 {
		t.Errorf("when it is gone %v are remembered, want none", d.there)
	}
}
