// Package periodic does one thing again and again, as the loops of the controller do
// that read memory or the cache.
package periodic

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// After is like the clock's, with a channel that is ready at a multiple of the pause: after
// half of it at least, and one and a half at most. Timers that are due by themselves wake the
// process each; those of loops with like pauses are due together.
func After(c clock.Clock, pause time.Duration) <-chan time.Time {
	return c.After(untilMultiple(c.Now(), pause))
}

// untilMultiple is how long it is until a multiple of the pause.
func untilMultiple(now time.Time, pause time.Duration) time.Duration {
	wait := now.Truncate(pause).Add(pause).Sub(now)
	if wait < pause/2 {
		wait += pause
	}
	return wait
}

// Run does it at once, and again after every pause, as [After] has it, until ctx ends. A
// failure is logged under the name of what is done, and does not end it. It returns nil, as a
// manager's runnable does that was told to end.
func Run(ctx context.Context, c clock.Clock, pause time.Duration, name string, do func(context.Context) error) error {
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, name+" failed, trying again", "after", pause.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-After(c, pause):
		}
	}
}

// Pauses are how often is looked: after Look where something has changed, and in any case
// after AtMost.
type Pauses struct{ Look, AtMost time.Duration }

// RunOnChange is Run for what need not be done again while state returns the same number,
// which must cost next to nothing. state is asked before it is done, so that a change in
// between counts for the next time. After a failure it is done again after the short pause.
func RunOnChange(
	ctx context.Context, c clock.Clock, pauses Pauses, name string, state func() uint64, do func(context.Context) error,
) error {
	var seen uint64
	var at time.Time
	return Run(ctx, c, pauses.Look, name, func(ctx context.Context) error {
		now := state()
		if !at.IsZero() && now == seen && c.Since(at) < pauses.AtMost {
			return nil
		}
		at = time.Time{}
		if err := do(ctx); err != nil {
			return err
		}
		seen, at = now, c.Now()
		return nil
	})
}
