package disruption

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// A decision that took half a minute once stopped all others for five.
func TestPauseAfterSlowDecisionIsBounded(t *testing.T) {
	observed := func() bool { return true }
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond:        decideAtAll,
		1500 * time.Millisecond: 15 * time.Second,
		30 * time.Second:        pauseAtMost,
		time.Hour:               pauseAtMost,
	} {
		var p pacing
		end := time.Unix(1_700_000_000, 0)
		p.decided(decision{at: end, took: took, revision: 1})
		due := time.Duration(0)
		for ; due < time.Hour && !p.due(end.Add(due), 1, observed); due += 500 * time.Millisecond {
		}
		if due != want {
			t.Errorf("a decision took %s: the next one is due after %s, want %s", took, due, want)
		}
	}
}

// What changes together is decided about together, but a fleet that never comes to rest
// is decided about, too.
func TestDecisionWaitsForChangesToSettle(t *testing.T) {
	observed := func() bool { return true }
	const step = 100 * time.Millisecond
	for name, test := range map[string]struct{ changes, want time.Duration }{
		"at once":         {0, settle},
		"for two seconds": {2 * time.Second, 2*time.Second + settle},
		"for ever":        {time.Hour, settleAtMost},
	} {
		t.Run(name, func(t *testing.T) {
			var p pacing
			end := time.Unix(1_700_000_000, 0)
			p.decided(decision{at: end, took: time.Millisecond, revision: 1})
			// The pause after the last decision is over when the changes begin.
			begin, revision, due := end.Add(decideEvery), uint64(2), time.Duration(0)
			for ; due < time.Hour && !p.due(begin.Add(due), revision, observed); due += step {
				if due < test.changes {
					revision++
				}
			}
			if due != test.want {
				t.Errorf("changes %s: the decision is due after %s, want %s", name, due, test.want)
			}
		})
	}
}

// A fleet at rest is decided about less and less often, until something changes.
func TestDecisionsBecomeRareWhileNothingChanges(t *testing.T) {
	observed := func() bool { return true }
	now := time.Unix(1_700_000_000, 0)
	var p pacing
	pause := func(revision uint64) time.Duration {
		after := time.Duration(0)
		for ; after < time.Hour && !p.due(now.Add(after), revision, observed); after += 500 * time.Millisecond {
		}
		now = now.Add(after)
		return after
	}
	for i, want := range []time.Duration{10, 20, 40, 80, 120, 120} {
		p.decided(decision{at: now, took: time.Millisecond, revision: 1})
		if got := pause(1); got != want*time.Second {
			t.Errorf("decision %d: the next one is due after %s, want %s", i, got, want*time.Second)
		}
	}
	p.decided(decision{at: now, took: time.Millisecond, revision: 1})
	if got := pause(2); got != settle {
		t.Errorf("after a change the next decision is due after %s, want %s", got, settle)
	}
	for range 5 {
		p.decided(decision{at: now, took: time.Millisecond, revision: 2})
	}
	p.marketChanged()
	if got := pause(2); got != decideAtAll {
		t.Errorf("after other prices the next decision is due after %s, want %s", got, decideAtAll)
	}
	p.decided(decision{at: now, took: time.Millisecond, revision: 2, found: true})
	if got := pause(2); got != decideAtAll {
		t.Errorf("while there is something to do the next decision is due after %s, want %s", got, decideAtAll)
	}
}

// A minute in which the budgets let nodes go is not missed, though nothing has happened for
// hours, and no decision is made for it before.
func TestShortWindowOfBudgetsIsSeenOnQuietCluster(t *testing.T) {
	w := newWorld(t)
	opens := w.clock.Now().UTC().Truncate(time.Hour).Add(2 * time.Hour)
	w.create(nodePool(func(np *karpv1.NodePool) {
		schedule := fmt.Sprintf("1 %d * * *", opens.Hour())
		np.Spec.Disruption.Budgets = []karpv1.Budget{
			{Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: 24*time.Hour - time.Minute}}, {Nodes: "100%"},
		}
	}))
	for _, o := range large()[1:] {
		w.create(o)
	}
	decisions := 0
	plan := w.loop.decider.plan
	w.loop.decider.plan = func(p *model.DisruptionProblem) *model.Commands {
		decisions++
		return plan(p)
	}
	for w.clock.Now().Before(opens) {
		w.passFor(7 * time.Second)
	}
	if len(w.loop.commands.active) > 0 || decisions > 70 {
		t.Fatalf("before the window there are %d moves, and %d decisions were made", len(w.loop.commands.active), decisions)
	}
	if w.pass(); len(w.loop.commands.active) == 0 {
		t.Errorf("the first pass within the window begins no move")
	}
}

// On a cluster in which nothing happens, the replacement of a node of short life is bought when it
// is time for it, and not with the next decision of those that have become rare.
func TestShortLifeIsPreparedInTimeOnQuietCluster(t *testing.T) {
	objects := all(machine("a", "D2"), running(1, "web", "1500m", "a"))
	created := time.Now().Add(time.Hour).Truncate(time.Second) // the clock of the test is an hour ahead
	claim := objects[1].(*karpv1.NodeClaim)
	claim.Spec.ExpireAfter, claim.CreationTimestamp = karpv1.MustParseNillableDuration("20m"), metav1.NewTime(created)
	w := newWorld(t, objects...)
	due := created.Add(18 * time.Minute)
	for w.clock.Now().Before(due) {
		w.passFor(time.Second)
	}
	if len(w.claims()) != 1 {
		t.Fatalf("a replacement is bought more than a tenth of the node's life before its end")
	}
	w.pass()
	w.pass()
	if late := w.clock.Since(due); len(w.claims()) != 2 {
		t.Errorf("%s after it was time, no replacement has been bought", late)
	}
}

// A node whose drain a pod blocks for good does not hold consolidation of the others, as one does
// from which pods go.
func TestBlockedDrainHoldsNothing(t *testing.T) {
	for keeps, want := range map[string]bool{"true": false, "": true} {
		objects := all(machine("a", "D2"), running(1, "web", "400m", "a"))
		for _, o := range objects {
			if pod, is := o.(*corev1.Pod); is && keeps != "" {
				pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: keeps}
			}
		}
		w := newWorld(t, objects...)
		w.sync()
		if draining(w.store.Snapshot(), w.clock.Now()) {
			t.Error("a node that stays is drained")
		}
		w.delete(&w.claims()[0])
		w.sync()
		if got := draining(w.store.Snapshot(), w.clock.Now()); got != want {
			t.Errorf("with do-not-disrupt %q: others wait for the drain: %t, want %t", keeps, got, want)
		}
	}
}
