package periodic

import (
	"context"
	"errors"
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
