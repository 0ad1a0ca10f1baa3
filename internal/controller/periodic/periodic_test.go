package periodic

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestRunGoesOnAfterFailureUntilContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		var at []time.Duration
		start := time.Now()
		err := Run(ctx, clock.RealClock{}, 10*time.Second, "counting", func(context.Context) error {
			at = append(at, time.Since(start))
			return errors.New("no")
		})
		if err != nil || len(at) != 3 || at[0] != 0 || at[2] != 20*time.Second {
			t.Errorf("it ran at %v, and ended with %v", at, err)
		}
		if took := time.Since(start); took != 25*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}

func TestRunOnChangeLooksAfterChangesAndFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
		defer cancel()
		var at []time.Duration
		start := time.Now()
		state := func() uint64 {
			if time.Since(start) >= 9*time.Second {
				return 1
			}
			return 0
		}
		err := RunOnChange(ctx, clock.RealClock{}, Pauses{2 * time.Second, 30 * time.Second}, "counting", state, func(context.Context) error {
			at = append(at, time.Since(start))
			if len(at) == 2 {
				return errors.New("no")
			}
			return nil
		})
		// At once; after the change, which fails; again; and after half a minute.
		want := []time.Duration{0, 10 * time.Second, 12 * time.Second, 42 * time.Second}
		if err != nil || !slices.Equal(at, want) {
			t.Errorf("it ran at %v, want %v, and ended with %v", at, want, err)
		}
	})
}
