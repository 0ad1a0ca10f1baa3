package garbagecollection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestLoopCollectsAtStartAndPeriodicallyDespiteErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var at []time.Duration
		loop := &Loop{Kind: "virtual machines", Every: 2 * time.Minute,
			Clock: clock.RealClock{}, Collect: func(context.Context) ([]string, error) {
				at = append(at, time.Since(start))
				return []string{"gone"}, errors.New("one of two could not be deleted")
			}}
		done := make(chan error)
		go func() { done <- loop.Start(ctx) }()
		time.Sleep(5 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("a loop that is told to stop has not failed: %v", err)
		}
		if len(at) != 3 || at[0] != 0 || at[1] != 2*time.Minute || at[2] != 4*time.Minute {
			t.Errorf("collected at %v", at)
		}
	})
}
