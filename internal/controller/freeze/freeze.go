// Package freeze tells of NodePools that a user has frozen (nap freeze): a condition and
// an event on the NodePool. That none of their nodes is removed voluntarily is decided by
// the planner, from the same annotations.
package freeze

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// every is how often the loop looks whether a NodePool has changed, atLeastEvery how often
// at all NodePools: the time until which one is frozen ends without a change.
const every, atLeastEvery = 2 * time.Second, 10 * time.Second

// Condition is True on a NodePool while it is frozen.
const Condition = "Frozen"

// The reasons of events and of the condition.
const (
	ReasonFrozen = event.ReasonFrozen
	ReasonThawed = event.ReasonThawed
)

// Loop keeps the conditions. It is a manager's runnable.
type Loop struct {
	Kube     client.Client
	Recorder events.Recorder
	Clock    clock.Clock
	// Changes counts the changes of NodePools.
	Changes func() uint64
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	return periodic.RunOnChange(ctx, l.Clock, periodic.Pauses{Look: every, AtMost: atLeastEvery},
		"telling which NodePools are frozen", l.Changes, l.look)
}

func (l *Loop) look(ctx context.Context) error {
	var list karpv1.NodePoolList
	if err := l.Kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	for i := range list.Items {
		if !concerns(&list.Items[i]) {
			continue
		}
		if err := l.tell(ctx, list.Items[i].DeepCopy()); err != nil { // the cache's own is not to be changed
			return err
		}
	}
	return nil
}

// concerns reports whether a NodePool is frozen, or has been.
func concerns(pool *karpv1.NodePool) bool {
	return kube.FreezeOf(pool) != nil ||
		slices.ContainsFunc(pool.Status.Conditions, func(c status.Condition) bool { return c.Type == Condition })
}

// tell makes the condition say what the annotations say, with an event when that is new.
// When another writer was faster, the next look sees the NodePool as it is then.
func (l *Loop) tell(ctx context.Context, pool *karpv1.NodePool) error {
	frozen := kube.FreezeOf(pool)
	stored := pool.DeepCopy()
	conditions := pool.StatusConditions(status.WithClock(l.Clock))
	before := conditions.Get(Condition)
	text, told := "Nodes may be removed voluntarily", event.Thawed
	switch {
	case frozen.Holds(l.Clock.Now()):
		text, told = "No node is removed voluntarily "+frozen.String(), event.Frozen
		if before.IsTrue() && before.Message == text {
			return nil
		}
		conditions.SetTrueWithReason(Condition, ReasonFrozen, text)
	case before.IsTrue():
		conditions.SetFalse(Condition, ReasonThawed, text)
	default:
		return nil
	}
	if written, err := periodic.WriteStatus(ctx, l.Kube, stored, pool); !written {
		return err
	}
	l.Recorder.Publish(told(pool, text))
	return nil
}
