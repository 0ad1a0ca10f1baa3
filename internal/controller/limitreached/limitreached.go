// Package limitreached tells of NodePools whose limits keep machines from being bought that
// pods wait for, and of limits that cannot be read: a condition and an event on the
// NodePool. What limits leave is decided by the planner; this room says it where people
// look.
package limitreached

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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

// every is how often the loop looks whether a NodePool or a limit has changed, atLeastEvery
// how often at all NodePools. It reads memory alone.
const every, atLeastEvery = 2 * time.Second, time.Minute

// Condition is True on a NodePool while one of its limits keeps a machine from being
// bought that pods or spec.replicas ask for, or cannot be read.
const Condition = "LimitReached"

// limitNodes is the limit of how many nodes a NodePool may have.
const limitNodes = "nodes"

// The reasons of events and of the condition.
const (
	ReasonReached = event.ReasonLimitReached
	ReasonInvalid = event.ReasonLimitInvalid
	ReasonRoom    = event.ReasonLimitLeavesRoom
)

// Loop keeps the conditions. It is a manager's runnable.
type Loop struct {
	Kube     client.Client
	Recorder events.Recorder
	Clock    clock.Clock
	// Reached says which limits keep machines from being bought, by NodePool, and false
	// while that is not known.
	Reached func() (map[string]string, bool)
	// Changes counts the changes of NodePools.
	Changes func() uint64

	// last is what Reached said last, and said how often that was something else. One
	// goroutine uses them.
	last struct {
		reached map[string]string
		known   bool
	}
	said uint64
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	return periodic.RunOnChange(ctx, l.Clock, periodic.Pauses{Look: every, AtMost: atLeastEvery},
		"telling which NodePools have reached a limit", l.state, l.look)
}

// state is another number after each change of a NodePool or of what is reached.
func (l *Loop) state() uint64 {
	reached, known := l.Reached()
	if known != l.last.known || !maps.Equal(reached, l.last.reached) {
		l.last.reached, l.last.known = reached, known
		l.said++
	}
	return l.Changes() + l.said
}

func (l *Loop) look(ctx context.Context) error {
	var list karpv1.NodePoolList // shared with the cache: what is changed is copied
	if err := l.Kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	reached, known := l.Reached()
	for i := range list.Items {
		pool := &list.Items[i]
		_, invalid := kube.CostLimit(pool)
		if invalid == nil && !known {
			continue
		}
		if err := l.tell(ctx, pool, cmp.Or(reached[pool.Name], tooManyReplicas(pool)), invalid); err != nil {
			return err
		}
	}
	return nil
}

// tooManyReplicas says that a static NodePool wants more nodes than it may have: no pod waits for
// them. It is empty for every other NodePool.
func tooManyReplicas(pool *karpv1.NodePool) string {
	limit, limited := pool.Spec.Limits[limitNodes]
	if pool.Spec.Replicas == nil || !limited || *pool.Spec.Replicas <= limit.Value() {
		return ""
	}
	return fmt.Sprintf("The limit of %d nodes (spec.limits.nodes) keeps the NodePool from the %d that spec.replicas asks for",
		limit.Value(), *pool.Spec.Replicas)
}

// tell makes the condition of a NodePool say that a limit is reached, or cannot be read,
// with an event when that is new. When another writer was faster, the next look sees the
// NodePool as it is then. The NodePool stays as it is.
func (l *Loop) tell(ctx context.Context, stored *karpv1.NodePool, reached string, invalid error) error {
	before := kube.Condition(stored, Condition)
	reason, text, told := ReasonRoom, "No limit keeps a machine from being bought that pods wait for", event.LimitLeavesRoom
	switch {
	case invalid != nil:
		reason, text, told = ReasonInvalid, "Nothing is bought: "+invalid.Error(), event.LimitInvalid
	case reached != "":
		reason, text, told = ReasonReached, reached, event.LimitReached
	}
	if reason == ReasonRoom && !before.IsTrue() || reason != ReasonRoom && before.IsTrue() && before.Message == text {
		return nil
	}
	pool := stored.DeepCopy()
	conditions := pool.StatusConditions(status.WithClock(l.Clock))
	if reason == ReasonRoom {
		conditions.SetFalse(Condition, reason, text)
	} else {
		conditions.SetTrueWithReason(Condition, reason, text)
	}
	if written, err := periodic.WriteStatus(ctx, l.Kube, stored, pool); !written {
		return err
	}
	l.Recorder.Publish(told(pool, text))
	return nil
}
