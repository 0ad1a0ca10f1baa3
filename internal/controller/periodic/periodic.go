// Package periodic does one thing again and again, as the loops of the controller do
// that read memory or the cache.
package periodic

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Run does it at once, and again after every pause, until ctx ends. A failure is logged
// under the name of what is done, and does not end it. It returns nil, as a manager's
// runnable does that was told to end.
func Run(ctx context.Context, c clock.Clock, pause time.Duration, name string, do func(context.Context) error) error {
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, name+" failed, trying again", "after", pause.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.After(pause):
		}
	}
}
