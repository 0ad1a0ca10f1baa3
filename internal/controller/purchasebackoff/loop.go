package purchasebackoff

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
)

// every is how often the loop looks while machines are on their way, purchases pause or
// objects change, and atLeastEvery how often otherwise. It reads the cache alone.
const every, atLeastEvery = 2 * time.Second, time.Minute

// The reasons of events and conditions.
const (
	ReasonPaused  = event.ReasonPurchasesPaused
	ReasonResumed = event.ReasonPurchasesResumed
)

// ConditionBackoff is True on a NodePool while nothing, or single machines only, are
// bought from it for workloads whose purchases led to nothing.
const ConditionBackoff = "PurchaseBackoff"

// Metrics are told of what is paused.
type Metrics interface {
	// Paused sets the number of workloads and of AKSNodeClasses for which purchases
	// pause.
	Paused(workloads, classes int)
}

// Loop follows registrations and purchases and tells of what is paused: conditions of
// AKSNodeClasses and NodePools, events, metrics. It is a manager's runnable.
type Loop struct {
	Kube          client.Client
	Recorder      events.Recorder
	Clock         clock.Clock
	Metrics       Metrics
	Purchases     *Purchases
	Registrations *Registrations
	// Snapshot is the cluster as plans see it.
	Snapshot func() *fleet.Snapshot
	// Known reports whether Snapshot has the whole cluster and what an earlier controller wrote
	// down was read. Before, pauses are not known, and nothing is told.
	Known func() bool
	// Changes counts the changes of AKSNodeClasses, NodePools and NodeClaims.
	Changes func() uint64

	// told is whether the last look knew what pauses, paused whether anything did then; busy
	// counts the looks that were due without a change of objects. One goroutine uses them.
	told   bool
	paused bool
	busy   uint64
}

// NeedLeaderElection makes the manager run the loop on the leader alone.
func (l *Loop) NeedLeaderElection() bool { return true }

// Start looks until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	return periodic.RunOnChange(ctx, l.Clock, periodic.Pauses{Look: every, AtMost: atLeastEvery},
		"following machines until they are nodes", l.state, l.look)
}

// state is the number of changes; while machines are followed or the outcome of a purchase is
// awaited, or something pauses or may do so, another one every time, since pods come, pauses
// end and machines are given up as time passes.
func (l *Loop) state() uint64 {
	awaited := l.Purchases.awaits() || l.Registrations.following()
	if !l.told || l.paused || awaited || len(l.Purchases.inRow()) > 0 || len(l.Registrations.Paused()) > 0 {
		l.busy++
	}
	return l.Changes() + l.busy
}

func (l *Loop) look(ctx context.Context) error {
	if err := l.Registrations.Look(ctx, l.Kube); err != nil {
		return err
	}
	if l.told = l.Known(); !l.told {
		return nil
	}
	l.Purchases.Land(l.Snapshot)
	classes := l.Registrations.Paused()
	workloads := l.Purchases.Paused(l.Snapshot)
	l.paused = len(workloads)+len(classes) > 0
	l.Metrics.Paused(len(workloads), len(classes))
	if err := l.tellClasses(ctx, classes); err != nil {
		return err
	}
	return l.tellPools(ctx, classes, workloads)
}

func (l *Loop) tellClasses(ctx context.Context, paused map[string]Record) error {
	var list v1beta1.AKSNodeClassList // shared with the cache: what is changed is copied
	if err := l.Kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing AKSNodeClasses: %w", err)
	}
	for i := range list.Items {
		record, is := paused[list.Items[i].Name]
		if !is && !kube.Condition(&list.Items[i], v1beta1.ConditionNodeRegistrationHealthy).IsFalse() {
			continue
		}
		class := list.Items[i].DeepCopy()
		conditions := class.StatusConditions(status.WithClock(l.Clock))
		stored := class.DeepCopy()
		before := conditions.Get(v1beta1.ConditionNodeRegistrationHealthy)
		switch {
		case is && before.IsFalse() && before.Message == Text(&record):
			continue
		case is:
			conditions.SetFalse(v1beta1.ConditionNodeRegistrationHealthy, ReasonRegistrationFailed, Text(&record))
		default:
			conditions.SetTrue(v1beta1.ConditionNodeRegistrationHealthy)
		}
		if written, err := periodic.WriteStatus(ctx, l.Kube, stored, class); err != nil || !written {
			return err
		}
		if is {
			l.Recorder.Publish(event.PurchasesPaused(class, Text(&record)))
		} else {
			l.Recorder.Publish(event.PurchasesResumed(class))
		}
	}
	return nil
}

func (l *Loop) tellPools(ctx context.Context, classes map[string]Record, workloads []Record) error {
	var list karpv1.NodePoolList // shared with the cache: what is changed is copied
	if err := l.Kube.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	byPool := map[string][]string{}
	for i := range workloads {
		r := &workloads[i]
		pool := r.Last[len(r.Last)-1].Pool
		byPool[pool] = append(byPool[pool], fmt.Sprintf("%s (until %s)", Workload(r.Key).Name(), r.Until.UTC().Format(time.RFC3339)))
	}
	for i := range list.Items {
		shared := &list.Items[i]
		var record Record
		paused := false
		if ref := shared.Spec.Template.Spec.NodeClassRef; ref != nil {
			record, paused = classes[ref.Name]
		}
		if !paused && len(byPool[shared.Name]) == 0 && !told(shared) {
			continue
		}
		pool := shared.DeepCopy()
		conditions := pool.StatusConditions(status.WithClock(l.Clock))
		stored := pool.DeepCopy()
		l.setBackoff(conditions, byPool[pool.Name])
		setRegistrationHealth(conditions, paused, &record)
		if _, err := periodic.WriteStatus(ctx, l.Kube, stored, pool); err != nil {
			return err
		}
	}
	return nil
}

// told reports whether a NodePool has a condition that may have to be taken back.
func told(pool *karpv1.NodePool) bool {
	return kube.Condition(pool, ConditionBackoff).IsTrue() || kube.Condition(pool, karpv1.ConditionTypeNodeRegistrationHealthy).IsFalse()
}

// setBackoff keeps the condition of workloads for which little is bought.
func (l *Loop) setBackoff(conditions status.ConditionSet, workloads []string) {
	before := conditions.Get(ConditionBackoff)
	switch {
	case len(workloads) > 0:
		slices.Sort(workloads)
		text := "Purchases for these led to no running pod and pause: " + listed(workloads)
		if !before.IsTrue() || before.Message != text {
			conditions.SetTrueWithReason(ConditionBackoff, ReasonPaused, text)
		}
	case before.IsTrue():
		conditions.SetFalse(ConditionBackoff, ReasonResumed, "No purchase pauses")
	}
}

// setRegistrationHealth says on a NodePool what is known of its class. Karpenter
// writes the same condition by what it counts per NodePool.
func setRegistrationHealth(conditions status.ConditionSet, paused bool, record *Record) {
	before := conditions.Get(karpv1.ConditionTypeNodeRegistrationHealthy)
	ours := before != nil && strings.Contains(before.Message, pausedMark)
	switch text := Text(record); {
	case paused && (!before.IsFalse() || before.Message != text):
		conditions.SetFalse(karpv1.ConditionTypeNodeRegistrationHealthy, ReasonRegistrationFailed, text)
	case !paused && before.IsFalse() && ours:
		conditions.SetTrue(karpv1.ConditionTypeNodeRegistrationHealthy)
	}
}

// pausedMark is in every message that this package writes to NodeRegistrationHealthy.
const pausedMark = "at a time until one registers"

// Paused are the workloads for which so many purchases have failed in a row that they are
// made one by one, or not at all, by key. One of which no pod waits is none of them: its
// owner may be gone, or has another template by now.
func (p *Purchases) Paused(snapshot func() *fleet.Snapshot) []Record {
	failed := p.inRow()
	if len(failed) == 0 {
		return nil
	}
	waiting := wanting(snapshot())
	var out []Record
	for _, key := range slices.Sorted(maps.Keys(failed)) {
		if waiting[Workload(key)] {
			out = append(out, failed[key])
		}
	}
	return out
}

// inRow are the workloads for which so many purchases have failed in a row, whether or not
// pods of them wait, by key.
func (p *Purchases) inRow() map[string]Record {
	byKey := map[string]Record{}
	for _, b := range []*Breaker{p.Launches, p.Landings} {
		for _, r := range b.Records() {
			if b.paused(&r) {
				byKey[r.Key] = r
			}
		}
	}
	return byKey
}
