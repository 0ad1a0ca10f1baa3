package karpenter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// countedPools is a counter of which the test says what the cluster is like.
type countedPools struct {
	*poolCounter
	t              *testing.T
	asked, counted int
	mirrorComplete bool
	changed        uint64
	result         reconcile.Result
}

func newCountedPools(t *testing.T) *countedPools {
	w := &countedPools{t: t, result: reconcile.Result{RequeueAfter: countEvery}}
	w.poolCounter = &poolCounter{
		count:   reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { w.counted++; return w.result, nil }),
		synced:  func(context.Context) bool { w.asked++; return w.mirrorComplete },
		changes: func() uint64 { return w.changed }, clock: clock.RealClock{}, counted: map[string]time.Time{},
	}
	return w
}

// play reconciles NodePools as often as they want for a time.
func (w *countedPools) play(d time.Duration, pools ...string) {
	w.t.Helper()
	until := time.Now().Add(d)
	next := map[string]time.Time{}
	for time.Now().Before(until) {
		for _, pool := range pools {
			if time.Now().Before(next[pool]) {
				continue
			}
			result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
			if err != nil || result.RequeueAfter <= 0 {
				w.t.Fatalf("NodePool %s comes again after %s, %v", pool, result.RequeueAfter, err)
			}
			next[pool] = time.Now().Add(result.RequeueAfter)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestMirrorIsAskedOnceForAllNodePools: and nothing is counted before it has seen all.
func TestMirrorIsAskedOnceForAllNodePools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCountedPools(t)
		pools := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		w.play(10*time.Second, pools...)
		if w.asked > 11 || w.counted != 0 {
			t.Errorf("the mirror was asked %d times in 10 s, want 11 at most, and NodePools were counted %d times", w.asked, w.counted)
		}
		w.mirrorComplete = true
		w.play(3*time.Second, pools...)
		if w.counted != len(pools) {
			t.Errorf("NodePools were counted %d times once the mirror was complete, want %d", w.counted, len(pools))
		}
	})
}

// TestNodePoolsAreCountedAfterChanges: every 5 s while objects change and until the mirror
// has surely seen that, and once a minute after.
func TestNodePoolsAreCountedAfterChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCountedPools(t)
		w.mirrorComplete = true
		during := func(what string, d time.Duration, least, most int) {
			t.Helper()
			before := w.counted
			if w.play(d, "general"); w.counted-before < least || w.counted-before > most {
				t.Errorf("%s: counted %d times in %s, want %d to %d times", what, w.counted-before, d, least, most)
			}
		}
		during("after the start", 20*time.Second, 4, 4)
		during("at rest", 10*time.Minute, 9, 11)
		w.changed++
		during("after a change", 20*time.Second, 4, 4)
		w.result = reconcile.Result{RequeueAfter: time.Second} // a NodeClaim is being launched
		w.changed++
		during("while it cannot be counted", 2*time.Minute, 100, 130)
	})
}
