package provisioning

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// inBubble runs a test in virtual time, with a batch of Karpenter's defaults.
func inBubble(t *testing.T, test func(t *testing.T, ctx context.Context, b *Batch)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		test(t, ctx, NewBatch(BatchDurations{Idle: time.Second, Max: 10 * time.Second}, clock.RealClock{}))
	})
}

// triggerEvery fires n triggers, the first one now and the others a gap apart.
func triggerEvery(b *Batch, n int, gap time.Duration, key func(int) string) {
	b.Trigger(key(0), News{})
	for i := 1; i < n; i++ {
		time.AfterFunc(time.Duration(i)*gap, func() { b.Trigger(key(i), News{}) })
	}
}

func never(context.Context, []Owner) bool { return false }

// closed waits for the batch and says why and when it closed.
func closed(ctx context.Context, t *testing.T, b *Batch, complete func(context.Context, []Owner) bool) string {
	t.Helper()
	start := time.Now()
	why, ok := b.Wait(ctx, complete)
	if !ok {
		return "ended"
	}
	return fmt.Sprintf("%s after %s", why, time.Since(start))
}

func TestBatchClosesAfterIdleDuration(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		triggerEvery(b, 5, 400*time.Millisecond, func(i int) string { return fmt.Sprint("pod", i) })
		if got, want := closed(ctx, t, b, never), "idle after 2.6s"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestBatchNotExtendedByKnownPod(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		triggerEvery(b, 5, 400*time.Millisecond, func(int) string { return "pod" })
		if got, want := closed(ctx, t, b, never), "idle after 1s"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestBatchClosesAtMaximumDuration(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		triggerEvery(b, 50, 300*time.Millisecond, func(i int) string { return fmt.Sprint("pod", i) })
		if got, want := closed(ctx, t, b, never), "max after 10s"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestBatchClosesWhenOwnersAreComplete(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		owner := Owner{Kind: "ReplicaSet", Name: "web"}
		b.Trigger("pod", News{Owner: &owner})
		start := time.Now()
		complete := func(_ context.Context, owners []Owner) bool {
			if len(owners) != 1 || owners[0] != owner {
				t.Errorf("asked about %v", owners)
			}
			return time.Since(start) > 310*time.Millisecond
		}
		if got, want := closed(ctx, t, b, complete), "complete after 325ms"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestBatchWaitsForOwnersThatFollowEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		owners int
		gap    time.Duration
		want   string
	}{
		{"one alone", 1, 0, "complete after 150ms"},
		{"those of one file", 5, 100 * time.Millisecond, "complete after 550ms"},
		{"no end of them", 50, 100 * time.Millisecond, "complete after 1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
				for i := range c.owners {
					time.AfterFunc(time.Duration(i)*c.gap-time.Nanosecond, func() {
						b.Trigger(fmt.Sprint("pod", i), News{Owner: &Owner{Kind: "ReplicaSet", Name: fmt.Sprint("web", i)}})
					})
				}
				always := func(context.Context, []Owner) bool { return true }
				if got := closed(ctx, t, b, always); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestBatchCountsFromWhenOwnersAppeared: a ReplicaSet is there a while before its first pod.
func TestBatchCountsFromWhenOwnersAppeared(t *testing.T) {
	for _, c := range []struct {
		name string
		ago  time.Duration
		want string
	}{
		{"just now", 0, "complete after 150ms"},
		{"a moment ago", 80 * time.Millisecond, "complete after 75ms"},
		{"long ago", time.Minute, "complete after 25ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
				b.Trigger("pod", News{Owner: &Owner{Kind: "ReplicaSet", Name: "web"}, Appeared: time.Now().Add(-c.ago)})
				always := func(context.Context, []Owner) bool { return true }
				if got := closed(ctx, t, b, always); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestBatchOfTentativeTriggersIsDroppedWhenMoot(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		owner := Owner{Kind: "ReplicaSet", Name: "web"}
		moot := true
		b.moot = func(_ context.Context, owners []Owner) bool {
			if len(owners) != 1 || owners[0] != owner {
				t.Errorf("asked about %v", owners)
			}
			return moot
		}
		always := func(context.Context, []Owner) bool { return true }
		b.Trigger("pod", News{Owner: &owner, Tentative: true})
		time.AfterFunc(9990*time.Millisecond, func() {
			b.Trigger("pod", News{Owner: &owner, Tentative: true})
			b.Trigger("other", News{Owner: &owner})
		})
		if got, want := closed(ctx, t, b, always), "complete after 10.14s"; got != want {
			t.Errorf("a pod that the scheduler has judged: got %s, want %s", got, want)
		}
		moot = false
		b.Trigger("pod", News{Owner: &owner, Tentative: true})
		if got, want := closed(ctx, t, b, always), "complete after 150ms"; got != want {
			t.Errorf("a pod that still waits: got %s, want %s", got, want)
		}
	})
}

func TestBatchUrgentTriggerSkipsIdleDuration(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		always := func(context.Context, []Owner) bool { return true }
		b.Trigger("pod", News{})
		if got, want := closed(ctx, t, b, always), "idle after 1s"; got != want {
			t.Errorf("a reminder: got %s, want %s", got, want)
		}
		b.Trigger("claim", News{Urgent: true})
		if got, want := closed(ctx, t, b, always), "complete after 25ms"; got != want {
			t.Errorf("urgent news: got %s, want %s", got, want)
		}
	})
}

func TestBatchStartsWithFirstTrigger(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		b.Trigger("pod", News{})
		closed(ctx, t, b, never)
		time.AfterFunc(time.Minute, func() { b.Trigger("pod", News{}) })
		if got, want := closed(ctx, t, b, never), "idle after 1m1s"; got != want {
			t.Errorf("got %s, want %s: the next batch must begin with the next trigger", got, want)
		}
	})
}

func TestBatchTriggerWhilePlanningOpensNextBatch(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
		b.Trigger("pod", News{})
		closed(ctx, t, b, never)
		b.Trigger("other", News{Owner: &Owner{}})
		if got, want := closed(ctx, t, b, never), "idle after 1s"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, _ context.Context, b *Batch) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := closed(ctx, t, b, never); got != "ended" {
			t.Errorf("got %s", got)
		}
		b.Trigger("pod", News{})
		if got := closed(ctx, t, b, never); got != "ended" {
			t.Errorf("got %s", got)
		}
	})
}

// While owners are known to have their first pods to come, nothing is planned for a pause between
// two of them, but for BATCH_MAX_DURATION at most.
func TestIdleBatchStaysOpenWhilePodsAreToCome(t *testing.T) {
	for within, want := range map[time.Duration]string{
		0: "idle after 1s", 3500 * time.Millisecond: "idle after 4s", time.Hour: "max after 10s",
	} {
		inBubble(t, func(t *testing.T, ctx context.Context, b *Batch) {
			began := time.Now()
			b.coming = func() bool { return time.Since(began) < within }
			b.Trigger("pod", News{})
			if got := closed(ctx, t, b, never); got != want {
				t.Errorf("pods are to come for %s: %s, want %s", within, got, want)
			}
		})
	}
}
