package liveness

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestCheckNamesLoopThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &Activity{}, &Activity{}
		check := Check(clock.RealClock{}, Loop{"provisioning", a}, Loop{"disruption", b})
		a.Begin(time.Now())
		time.Sleep(Longest)
		if err := check(nil); err != nil {
			t.Errorf("after %s: %v", Longest, err)
		}
		a.End()
		b.Begin(time.Now())
		time.Sleep(Longest / 2)
		b.Begin(time.Now()) // the same step
		time.Sleep(Longest/2 + time.Second)
		if err := check(nil); err == nil || !strings.Contains(err.Error(), "disruption has been at one step for 5m1s") {
			t.Errorf("got %v", err)
		}
		b.End()
		time.Sleep(2 * Longest)
		if err := check(nil); err != nil {
			t.Errorf("while both wait: %v", err)
		}
	})
}

func TestProbeFailsWhileReadDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		given := make(chan struct{})
		probe := Probe(clock.RealClock{}, "reading the mirror", func() { calls.Add(1); <-given })
		for range 5 {
			if err := probe(nil); err != nil {
				t.Fatalf("before the limit: %v", err)
			}
			time.Sleep(Longest/5 + time.Second)
		}
		if err := probe(nil); err == nil || !strings.Contains(err.Error(), "reading the mirror") {
			t.Errorf("got %v", err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls while one was out, want 1", n)
		}
		close(given)
		synctest.Wait()
		if err := probe(nil); err != nil {
			t.Errorf("after it has returned: %v", err)
		}
		synctest.Wait()
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}
