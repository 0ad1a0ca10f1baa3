package purchasebackoff

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func testPolicy() Policy {
	return Policy{Pauses: []time.Duration{0, time.Minute, 10 * time.Minute, 20 * time.Minute}, Probes: 3}
}

func TestBreakerPausesGrowAndSuccessEndsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(testPolicy(), clock.RealClock{})
		want := func(verdict Verdict, pause time.Duration) {
			t.Helper()
			got, r := b.Ask("web", "")
			if left := max(0, time.Until(r.Until)); got != verdict || left != pause {
				t.Fatalf("got verdict %d and a pause of %s, want %d and %s", got, left, verdict, pause)
			}
		}
		want(Closed, 0)
		for i, pause := range []time.Duration{0, time.Minute, 10 * time.Minute, 20 * time.Minute, 20 * time.Minute} {
			if !b.Failed("web", Failure{Purchase: fmt.Sprint(i)}, time.Now(), "") {
				t.Fatalf("failure %d does not count", i)
			}
			if pause > 0 {
				want(Open, pause)
				time.Sleep(pause)
			}
			if i < 2 {
				want(Closed, 0)
			} else {
				want(Probe, 0)
			}
		}
		if v, _ := b.Ask("other", ""); v != Closed {
			t.Errorf("another key is not closed")
		}
		b.Succeeded("web")
		want(Closed, 0)
	})
}

func TestBreakerCountsEachPurchaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(testPolicy(), clock.RealClock{})
		early := time.Now()
		time.Sleep(time.Second)
		for i := range 3 {
			b.Failed("web", Failure{Purchase: fmt.Sprint(i)}, time.Now(), "")
		}
		_, before := b.Ask("web", "")
		time.Sleep(time.Second)
		if b.Failed("web", Failure{Purchase: "2"}, time.Now(), "") {
			t.Error("a purchase counts twice")
		}
		if b.Failed("web", Failure{Purchase: "asked for before the third failure"}, early, "") {
			t.Error("what was asked for before the breaker opened makes the pause longer")
		}
		if _, after := b.Ask("web", ""); after.Count != before.Count || after.Until != before.Until {
			t.Errorf("the record changed from %+v to %+v", before, after)
		}
	})
}

func TestBreakerTriesSoonerAfterChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(testPolicy(), clock.RealClock{})
		for i := range 3 {
			b.Failed("web", Failure{Purchase: fmt.Sprint(i)}, time.Now(), "as it was")
		}
		time.Sleep(pauseAfterChange)
		if v, _ := b.Ask("web", "as it was"); v != Open {
			t.Errorf("unchanged: got %d, want open", v)
		}
		// Only one purchase: the change may have mended nothing.
		if v, _ := b.Ask("web", "changed"); v != Probe {
			t.Errorf("changed: got %d, want probe", v)
		}
		b.Failed("web", Failure{Purchase: "4"}, time.Now(), "changed")
		if v, _ := b.Ask("web", "changed again"); v != Open {
			t.Errorf("changed again at once: got %d, want open", v)
		}
	})
}

func TestBreakerForgetsOldFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBreaker(testPolicy(), clock.RealClock{})
		for i := range 3 {
			b.Failed("web", Failure{Purchase: fmt.Sprint(i)}, time.Now(), "")
		}
		time.Sleep(forgetAfter)
		_, r := b.Ask("web", "")
		if r.Count != 3 {
			t.Errorf("%d failures are known at the end of the time, want 3", r.Count)
		}
		r.Last[0].Purchase = "another" // what was told is the caller's own
		if _, again := b.Ask("web", ""); again.Last[0].Purchase != "0" {
			t.Errorf("the breaker's own record became %+v", again.Last)
		}
		time.Sleep(time.Second)
		if v, r := b.Ask("web", ""); v != Closed || r.Count != 0 {
			t.Errorf("got verdict %d and %d failures, want none", v, r.Count)
		}
	})
}
