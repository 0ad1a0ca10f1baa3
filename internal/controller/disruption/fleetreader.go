package disruption

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// fleetReader states the fleet of this moment for the planner. It has no state of
// its own.
type fleetReader struct {
	mirror   Mirror
	catalogs fleet.Catalogs
	settings Settings
	// window is Config.Window.
	window func(context.Context, time.Time) (open bool, until time.Time, err error)
}

// read states the fleet at a moment. The caller says in options what it knows of
// commands and nodes; the rest is the same for every question.
func (r *fleetReader) read(ctx context.Context, now time.Time, options fleet.DisruptionOptions) (*fleet.DisruptionInput, error) {
	options.Now = now
	options.Policy.IgnorePreferences = r.settings.IgnorePreferences
	options.Policy.RelaxMinValues = r.settings.RelaxMinValues
	options.Policy.Share = r.settings.Share
	options.Terms = r.settings.Terms
	options.Repairs, options.TerminateFirst = r.settings.Repairs, r.settings.TerminateFirst
	options.ConsolidateFrom = r.consolidateFrom(ctx, now)
	return r.mirror.Snapshot().Disruption(ctx, r.catalogs, options)
}

// search is the policy of a decision, which may take the budget from this moment on.
func (r *fleetReader) search(since func() time.Duration) model.Policy {
	return model.Policy{Budget: r.settings.Budget, Elapsed: since}
}

// consolidateFrom is when consolidation may happen, zero when it may now. While
// that is not known it waits.
func (r *fleetReader) consolidateFrom(ctx context.Context, now time.Time) time.Time {
	if r.window == nil {
		return time.Time{}
	}
	open, until, err := r.window(ctx, now)
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "consolidation waits: the maintenance window is not known")
		return now.Add(askWindowEvery)
	case open:
		return time.Time{}
	case until.IsZero():
		return now.Add(askWindowEvery) // none is in sight
	}
	return until
}

// askWindowEvery is how soon an unknown window is asked for again.
const askWindowEvery = time.Minute

// careful asks the planner and turns a panic into an error. The process that
// removes nodes also buys them: a mistake in deciding what may go must not end it.
func careful[T any](ask func() T) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the planner failed on this fleet, which is a mistake in nap to be reported; nothing is given "+
				"back meanwhile: %v\n%s", p, debug.Stack())
		}
	}()
	return ask(), nil
}
