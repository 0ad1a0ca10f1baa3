package periodic

import (
	"context"
	"errors"
	"slices"
	"sync"
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

// TestLoopsWakeTogether: two loops that began at different moments, one of which looks half as
// often, are woken at the same ones.
func TestLoopsWakeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10100*time.Millisecond)
		defer cancel()
		var mu sync.Mutex
		woken := map[time.Time]int{}
		loop := func(late, pause time.Duration) {
			time.Sleep(late)
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-After(clock.RealClock{}, pause):
					mu.Lock()
					woken[time.Now()]++
					mu.Unlock()
				}
			}
		}
		go loop(130*time.Millisecond, 500*time.Millisecond)
		go loop(310*time.Millisecond, time.Second)
		<-ctx.Done()
		synctest.Wait()
		if len(woken) != 20 {
			t.Errorf("woken at %d moments, want each half second", len(woken))
		}
	})
}

// TestPausesAreNeitherShortNorLong: whatever moment one begins at.
func TestPausesAreNeitherShortNorLong(t *testing.T) {
	const pause = 3 * time.Second
	for late := time.Duration(0); late < pause; late += 7 * time.Millisecond {
		at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC).Add(late)
		wait := untilMultiple(at, pause)
		if wait < pause/2 || wait > pause*3/2 || at.Add(wait) != at.Add(wait).Truncate(pause) {
			t.Fatalf("at %s it waits %s", at, wait)
		}
	}
}
