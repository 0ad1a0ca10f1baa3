// Package outage tells people why nothing is launched: while Azure is out, while the
// cluster does not let nap buy, while machines could not join. Every AKSNodeClass says
// so in a condition, and events mark the beginning and the end. NodeClaims that waited for the
// end are launched then.
//
// Whether it is so, others decide. The conditions are no part of Ready: NodeClaims are
// kept, so that everything goes on where it was. Start with [Loop].
package outage

import (
	"context"
	"fmt"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
)

// every is how often the loop looks. It reads memory alone.
const every = time.Second

// Loop keeps the condition of all classes. It is a manager's runnable.
type Loop struct {
	Kube     client.Client
	Recorder events.Recorder
	Clock    clock.Clock
	// Metrics measures the reasons.
	Metrics *metrics.Pauses
	// Watches are what there is to tell of.
	Watches []Watch

	// measured are the reasons that Metrics has, by condition.
	measured map[string]string
	// ended are the reasons that have ended a short while ago.
	ended map[string]ending
}

// Watch is a reason for which nothing may be launched.
type Watch struct {
	// Condition is the type of the condition that tells of it.
	Condition string
	// Finding is how it is now.
	Finding func() Finding
	// Resumed is the message of the event that marks the end.
	Resumed string
	// NodePools has the events told on all NodePools, too.
	NodePools bool
}

// Finding is why nothing is launched; the zero value while something is.
type Finding struct {
	// Reason is in CamelCase, Message says what to do.
	Reason, Message string
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start keeps the conditions until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	return periodic.Run(ctx, l.Clock, every, "writing why nothing is launched", l.look)
}

// look brings every class up to date.
func (l *Loop) look(ctx context.Context) error {
	var list v1beta1.AKSNodeClassList
	if err := l.Kube.List(ctx, &list); err != nil {
		return fmt.Errorf("listing AKSNodeClasses: %w", err)
	}
	for _, w := range l.Watches {
		finding := w.Finding()
		l.measure(w, finding.Reason)
		changed := false
		for i := range list.Items {
			wrote, err := l.write(ctx, &list.Items[i], w, finding)
			if err != nil {
				return err
			}
			changed = changed || wrote
		}
		if changed && w.NodePools {
			if err := l.tellNodePools(ctx, w, finding); err != nil {
				return err
			}
		}
	}
	return l.releaseClaims(ctx)
}

// measure tells the metrics of a reason that has come or gone, and notes when one ended.
func (l *Loop) measure(w Watch, reason string) {
	was := l.measured[w.Condition]
	if was == reason {
		return
	}
	l.Metrics.Changed(was, reason)
	if l.measured == nil {
		l.measured, l.ended = map[string]string{}, map[string]ending{}
	}
	l.measured[w.Condition] = reason
	if delete(l.ended, reason); reason == "" {
		l.ended[was] = ending{l.Clock.Now(), w.Resumed}
	}
}

// write brings one condition of a class up to date, and reports whether people had to
// be told.
func (l *Loop) write(ctx context.Context, class *v1beta1.AKSNodeClass, w Watch, f Finding) (told bool, err error) {
	stored := class.DeepCopy()
	conditions := class.StatusConditions(status.WithClock(l.Clock))
	before := conditions.Get(w.Condition)
	paused := f != Finding{}
	switch {
	case paused && before.IsFalse() && before.Reason == f.Reason: // the words may change while it lasts; the first finding stays
		return false, nil
	case paused:
		conditions.SetFalse(w.Condition, f.Reason, f.Message)
	case before.IsTrue():
		return false, nil
	default:
		conditions.SetTrue(w.Condition)
	}
	written, err := periodic.WriteStatus(ctx, l.Kube, stored, class)
	if !written || !paused && !before.IsFalse() { // it was never otherwise
		return false, err
	}
	l.publish(class, w, f)
	return true, nil
}

// tellNodePools publishes the same on every NodePool.
func (l *Loop) tellNodePools(ctx context.Context, w Watch, f Finding) error {
	var pools karpv1.NodePoolList
	if err := l.Kube.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	for i := range pools.Items {
		l.publish(&pools.Items[i], w, f)
	}
	return nil
}

func (l *Loop) publish(object client.Object, w Watch, f Finding) {
	if f == (Finding{}) {
		l.Recorder.Publish(event.LaunchesResumed(object, w.Resumed, w.Condition))
		return
	}
	l.Recorder.Publish(event.LaunchesPaused(object, f.Message, w.Condition, f.Reason))
}
