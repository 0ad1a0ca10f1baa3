package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// flaky is a part whose runs the test ends.
type flaky struct {
	starts []time.Duration // since the beginning of the test
	end    chan error
	began  time.Time
}

func newFlaky() *flaky { return &flaky{end: make(chan error), began: time.Now()} }

func (f *flaky) run(ctx context.Context, notify events) error {
	f.starts = append(f.starts, time.Since(f.began))
	notify.started(Identity{PID: 1})
	notify.ready()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-f.end:
		return err
	}
}

// keepFlaky keeps a flaky part until stop, which returns what keep returned.
func keepFlaky(t *testing.T, f *flaky, starting bool) (k *keeper, stop func() error) {
	t.Helper()
	l := layout(t.TempDir())
	b := newBoard(l, State{Phase: PhaseReady, Parts: []PartState{{Name: "flaky", Status: StatusWaiting}}}, func(err error) { t.Error(err) })
	p := part{name: "flaky", kind: KindProcess, run: f.run, lastWords: func() string { return "  goodbye" }}
	k = newKeeper(p, b, slog.New(slog.DiscardHandler), func() bool { return starting }, func(string, ...any) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.keep(ctx) }()
	synctest.Wait()
	return k, func() error { cancel(); return <-ended }
}

func stateOf(k *keeper) PartState {
	s, _ := k.board.snapshot()
	return *s.Part("flaky")
}

func TestPartRestartsWithExponentialBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		k, stop := keepFlaky(t, f, false)
		for range 6 {
			f.end <- errors.New("ended with exit status 2")
			synctest.Wait()
			if got := stateOf(k).Status; got != StatusBackingOff {
				t.Errorf("status after the end = %s, want %s", got, StatusBackingOff)
			}
			time.Sleep(longPause)
			synctest.Wait()
		}
		var pauses []time.Duration
		for i := range f.starts[1:] {
			// The part ends at the moment at which the sleep above begins.
			pauses = append(pauses, f.starts[i+1]-time.Duration(i)*longPause)
		}
		want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
		if got := stateOf(k); got.Restarts != 6 || got.Status != StatusReady || got.LastExit != "ended with exit status 2" {
			t.Errorf("state = %+v, want 6 restarts, ready, and how it ended", got)
		}
		if err := stop(); err != nil {
			t.Errorf("keep = %v after stop, want nil", err)
		}
		if got := stateOf(k).Status; got != StatusStopped {
			t.Errorf("status after stop = %s", got)
		}
	})
}

func TestPartBackOffResetsAfterStableRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		_, stop := keepFlaky(t, f, false)
		defer func() { _ = stop() }()
		for range 3 {
			f.end <- errors.New("crash")
			time.Sleep(longPause)
			synctest.Wait()
		}
		time.Sleep(steadyTime)
		ended := time.Since(f.began)
		f.end <- errors.New("crash")
		time.Sleep(longPause)
		synctest.Wait()
		if pause := f.starts[len(f.starts)-1] - ended; pause != firstPause {
			t.Errorf("pause after a long run = %s, want %s", pause, firstPause)
		}
	})
}

func TestPartKilledIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		_, stop := keepFlaky(t, f, false)
		defer func() { _ = stop() }()
		for range 5 {
			f.end <- errKilled
			time.Sleep(firstPause)
			synctest.Wait()
		}
		if len(f.starts) != 6 {
			t.Errorf("started %d times after 5 kills with %s between them, want 6", len(f.starts), firstPause)
		}
	})
}

func TestPartExitDuringStartIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		_, stop := keepFlaky(t, f, true)
		f.end <- errors.New("ended with exit status 2")
		synctest.Wait()
		err := stop()
		want := "flaky did not start: ended with exit status 2; its last words:\n  goodbye"
		if err == nil || err.Error() != want {
			t.Errorf("keep = %v, want %s", err, want)
		}
		if len(f.starts) != 1 {
			t.Errorf("started %d times, want once", len(f.starts))
		}
	})
}

func TestPartRequestedRestartSkipsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		k, stop := keepFlaky(t, f, false)
		defer func() { _ = stop() }()
		ask := func() {
			taken := make(chan struct{})
			k.restart <- taken
			<-taken
			synctest.Wait()
		}
		ask()
		if got := stateOf(k); got.Restarts != 1 || got.Status != StatusReady {
			t.Errorf("state = %+v, want ready after 1 restart", got)
		}
		// Nor does it while the part backs off.
		f.end <- errors.New("crash")
		synctest.Wait()
		ask()
		if got := stateOf(k); got.Restarts != 2 || got.Status != StatusReady {
			t.Errorf("state = %+v, want ready after 2 restarts", got)
		}
		if waited := time.Since(f.began); waited != 0 {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestPartStatusUnreadyWhileProbeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		k, stop := keepFlaky(t, f, false)
		defer func() { _ = stop() }()
		var ok atomic.Bool
		ask := func(context.Context) error {
			if !ok.Load() {
				return errors.New("503")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go probe(ctx, ask, events{ready: k.becameReady, unready: k.notReady})
		synctest.Wait()
		if got := stateOf(k); got.Status != StatusUnready || got.Unready != "503" {
			t.Errorf("state = %+v, want unready because of 503", got)
		}
		ok.Store(true)
		time.Sleep(askOften)
		synctest.Wait()
		if got := stateOf(k); got.Status != StatusReady || got.Unready != "" {
			t.Errorf("state = %+v, want ready", got)
		}
	})
}

func TestStartErrorWithoutLog(t *testing.T) {
	err := fmt.Errorf("up: %w", &errStartup{part: "etcd", cause: errors.New("ended with exit status 1")})
	if !strings.HasSuffix(err.Error(), "; it logged nothing") {
		t.Errorf("error = %q", err)
	}
}
