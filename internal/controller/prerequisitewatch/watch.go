// Package prerequisitewatch looks at the prerequisites of nap while the controller leads:
// the table of package prerequisites, which nap doctor looks at, too, with the rights of
// the controller. What it finds becomes a condition and a list of names on the
// NodeAutoProvisioning (by package mode), events, a metric, and a line of nap status.
//
// It decides nothing: that nothing is bought while a prerequisite which forbids it is not
// met, the Azure provider sees to, which looks at those more often. Start with [Loop].
package prerequisitewatch

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

const (
	// every is the time between two looks, more or less a tenth of it, so that the
	// controllers of a subscription do not ask Azure all at once.
	every  = 10 * time.Minute
	jitter = every / 10
	// again is when a look is repeated that could not begin.
	again = 5 * time.Second
	// holds is how long what was known of a row counts while it cannot be read.
	holds = time.Hour
)

// Loop looks again and again. It is a manager's runnable that works on the leader alone;
// Report may be asked from anywhere.
type Loop struct {
	// Kube reads the NodeAutoProvisioning.
	Kube     client.Reader
	Recorder events.Recorder
	Clock    clock.Clock
	Metrics  *metrics.Prerequisites
	// Read reads the facts. It takes the time that it takes: nothing waits for it.
	Read func(context.Context) *prerequisites.Facts
	// Doctor is the command that says more than a message.
	Doctor string
	// Random is a number from 0 up to 1, for the time of the next look.
	Random func() float64

	report atomic.Pointer[Report]
	// known is what was read of a row last, and when.
	known map[string]finding
	// unmet are the rows of which people know that they are not met; nil before the first
	// look.
	unmet []string
}

// finding is a result with its time.
type finding struct {
	prerequisites.Result
	at time.Time
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Report is what was found last.
func (l *Loop) Report() Report {
	if r := l.report.Load(); r != nil {
		return *r
	}
	return Report{Doctor: l.Doctor}
}

// Start looks at once, and until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	for {
		pause := every - jitter + time.Duration(2*l.Random()*float64(jitter))
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			if !apierrors.IsNotFound(err) { // at the first start of all it is still to be made
				log.FromContext(ctx).Error(err, "looking at the prerequisites failed, trying again", "after", again.String())
			}
			pause = again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.Clock.After(pause):
		}
	}
}

// look looks once. What was found before it was told is known from the object.
func (l *Loop) look(ctx context.Context) error {
	object := &v1alpha1.NodeAutoProvisioning{}
	if err := l.Kube.Get(ctx, client.ObjectKey{Name: v1alpha1.NodeAutoProvisioningName}, object); err != nil {
		return fmt.Errorf("reading NodeAutoProvisioning %s: %w", v1alpha1.NodeAutoProvisioningName, err)
	}
	if l.unmet == nil {
		l.unmet = append([]string{}, object.Status.UnmetPrerequisites...)
	}
	facts := l.Read(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it ends: what could not be read any more says nothing
	}
	report := &Report{Results: l.held(prerequisites.CheckWatched(facts)), Doctor: l.Doctor}
	for i := range report.Results {
		r := &report.Results[i]
		switch r.Verdict {
		case prerequisites.Unknown:
			l.Metrics.Unknown(r.Name)
		case prerequisites.OK:
			l.Metrics.Known(r.Name, true)
		case prerequisites.Warning, prerequisites.Failed:
			l.Metrics.Known(r.Name, false)
		}
		l.tell(object, r)
	}
	l.report.Store(report)
	return nil
}

// held puts what was known of a row in the place of what could not be read.
func (l *Loop) held(results []prerequisites.Result) []prerequisites.Result {
	if l.known == nil {
		l.known = map[string]finding{}
	}
	now := l.Clock.Now()
	for i, r := range results {
		before, has := l.known[r.Name]
		switch {
		case r.Verdict != prerequisites.Unknown:
			l.known[r.Name] = finding{r, now}
		case has && now.Sub(before.at) < holds:
			results[i] = before.Result
		}
	}
	return results
}

// tell publishes that a row is not met any more, or is met again.
func (l *Loop) tell(object *v1alpha1.NodeAutoProvisioning, r *prerequisites.Result) {
	at := slices.Index(l.unmet, r.Name)
	now := l.Clock.Now().String()
	switch {
	case r.Verdict == prerequisites.OK && at >= 0:
		l.unmet = slices.Delete(l.unmet, at, at+1)
		l.Recorder.Publish(event.PrerequisiteMet(object, r, now))
	case r.Verdict != prerequisites.OK && r.Verdict != prerequisites.Unknown && at < 0:
		l.unmet = append(l.unmet, r.Name)
		l.Recorder.Publish(event.PrerequisiteNotMet(object, r, now))
	}
}
