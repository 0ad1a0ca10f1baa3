package errorlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// written is a logger of the level, and what it has written.
func written(t *testing.T, level slog.Level) (logr.Logger, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	l := New(clock.RealClock{})
	go func() { _ = l.Start(t.Context()) }()
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})
	return logr.New(l.Sink(logr.FromSlogHandler(handler).GetSink())), &out
}

// fail is what controller-runtime writes when a reconciler fails.
func fail(log logr.Logger, controller, object string, err error) {
	log.WithValues("controller", controller, "name", object).Error(err, "Reconciler error")
}

// An hour of an outage: 500 NodeClaims fail every ten seconds, in two ways.
func TestOutageIsWrittenOnceAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := written(t, slog.LevelInfo)
		for range 360 {
			for i := range 500 {
				name := fmt.Sprintf("default-%05d", i)
				fail(log, "nodeclaim.lifecycle", name, fmt.Errorf("launching nodeclaim %s, Put \"https://azure/%s\": the service is unavailable", name, name))
			}
			fail(log, "nodeclaim.garbagecollection", "", errors.New("listing machines: the service is unavailable"))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(longestPause + firstPause)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) > 20 {
			t.Errorf("%d lines in an hour, want few:\n%s", len(lines), out)
		}
		counted := 0
		for _, line := range lines {
			again := 1
			if _, number, ok := strings.Cut(line, "again="); ok {
				if _, err := fmt.Sscan(number, &again); err != nil {
					t.Fatal(err)
				}
			}
			counted += again
		}
		if want := 360*500 + 360; counted != want {
			t.Errorf("%d errors are told, want all %d", counted, want)
		}
		if !strings.Contains(lines[0], "default-00000") || strings.Contains(lines[0], "again=") {
			t.Errorf("the first one is not written as it is: %s", lines[0])
		}
	})
}

func TestErrorsOfOtherKindsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := written(t, slog.LevelInfo)
		fail(log, "a", "x-1", errors.New("reading machine x-1: not found"))
		fail(log, "a", "x-2", errors.New("reading machine x-2: not found"))
		fail(log, "a", "x-1", errors.New("reading machine x-1: forbidden"))
		fail(log, "b", "x-1", errors.New("reading machine x-1: not found"))
		log.Error(errors.New("reading machine x-1: not found"), "another message")
		log.Error(nil, "no error at all")
		log.Info("no error")
		log.Info("no error")
		if n := strings.Count(out.String(), "\n"); n != 7 {
			t.Errorf("%d lines, want all but the second:\n%s", n, out)
		}
	})
}

func TestErrorsThatAreCountedAreThereForDebugging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := written(t, slog.LevelDebug)
		fail(log, "a", "x-1", errors.New("reading machine x-1: not found"))
		fail(log, "a", "x-2", errors.New("reading machine x-2: not found"))
		if !strings.Contains(out.String(), "level=DEBUG") || !strings.Contains(out.String(), "x-2") {
			t.Errorf("the second one is lost:\n%s", out)
		}
	})
}

// An error that comes again after a long time is news.
func TestErrorAfterLongTimeIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := written(t, slog.LevelInfo)
		fail(log, "a", "x-1", errors.New("not found"))
		time.Sleep(3 * longestPause)
		synctest.Wait()
		fail(log, "a", "x-1", errors.New("not found"))
		if n := strings.Count(out.String(), "\n"); n != 2 || strings.Contains(out.String(), "again") {
			t.Errorf("%d lines, want both as they are:\n%s", n, out)
		}
	})
}
