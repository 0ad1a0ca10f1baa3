// Package errorlog writes an error that comes again and again once, and then how often it
// came. In an outage each of a thousand NodeClaims fails the same way at growing intervals,
// and the one line that says why must not drown.
package errorlog

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// firstPause is how long an error that was written is only counted; each further line
	// waits twice as long as the one before, up to longestPause.
	firstPause   = time.Minute
	longestPause = 15 * time.Minute
	// mostKinds bounds what is remembered. Further kinds of errors are all written.
	mostKinds = 1000
	// kindWords is how many words of an error say of which kind it is.
	kindWords = 16
)

// Log knows which errors were written. It is safe for concurrent use.
type Log struct {
	clock clock.Clock

	mu    sync.Mutex
	kinds map[string]*kind
}

// kind is one kind of error.
type kind struct {
	// written is when a line was last written, pause how long only counting goes on after it.
	written time.Time
	pause   time.Duration
	// again is how many came since, tell writes the last of them and that number.
	again int
	tell  func(again int)
}

// New is a log that has written nothing yet.
func New(c clock.Clock) *Log { return &Log{clock: c, kinds: map[string]*kind{}} }

// Sink writes to inner: all that is no error, and errors as the package says. Errors that
// are only counted go to the debug level.
func (l *Log) Sink(inner logr.LogSink) logr.LogSink { return sink{inner, l, ""} }

// NeedLeaderElection implements manager.LeaderElectionRunnable: the standby has errors, too.
func (l *Log) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it writes how often errors came, until ctx is done.
func (l *Log) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(firstPause):
			for _, tell := range l.due() {
				tell()
			}
		}
	}
}

// due are the lines that say how often errors came whose pause is over. Kinds that have not
// come again for the longest pause are forgotten.
func (l *Log) due() []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	var lines []func()
	for name, k := range l.kinds {
		switch since := now.Sub(k.written); {
		case since < k.pause:
		case k.again > 0:
			lines = append(lines, k.write(now))
		case since >= 2*longestPause:
			delete(l.kinds, name)
		}
	}
	return lines
}

// write notes that a line is written now, and returns what writes it.
func (k *kind) write(now time.Time) func() {
	again, tell := k.again, k.tell
	k.written, k.again, k.pause = now, 0, min(2*k.pause, longestPause)
	return func() { tell(again) }
}

// record notes an error, and returns what writes it; nil while it is only counted.
func (l *Log) record(name string, tell func(again int)) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	k := l.kinds[name]
	if k == nil {
		if len(l.kinds) < mostKinds {
			l.kinds[name] = &kind{written: now, pause: firstPause}
		}
		return func() { tell(0) }
	}
	k.again, k.tell = k.again+1, tell
	if now.Sub(k.written) < k.pause {
		return nil
	}
	return k.write(now)
}

// sink is a LogSink that asks the log. controller is the value of that key, if any.
type sink struct {
	logr.LogSink
	log        *Log
	controller string
}

func (s sink) Error(err error, msg string, keysAndValues ...any) {
	tell := func(again int) {
		if again > 0 {
			keysAndValues = append(keysAndValues[:len(keysAndValues):len(keysAndValues)], "again", again)
		}
		s.LogSink.Error(err, msg, keysAndValues...)
	}
	write := s.log.record(nameOf(s.controllerIn(keysAndValues), msg, err), tell)
	switch {
	case write != nil:
		write()
	case s.Enabled(1):
		s.LogSink.Info(1, msg, append(keysAndValues[:len(keysAndValues):len(keysAndValues)], "err", err)...)
	}
}

func (s sink) WithValues(keysAndValues ...any) logr.LogSink {
	return sink{s.LogSink.WithValues(keysAndValues...), s.log, s.controllerIn(keysAndValues)}
}

func (s sink) WithName(name string) logr.LogSink {
	return sink{s.LogSink.WithName(name), s.log, s.controller}
}

// controllerIn is the controller that the values name, or the one known so far.
func (s sink) controllerIn(keysAndValues []any) string {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if keysAndValues[i] == "controller" {
			return fmt.Sprint(keysAndValues[i+1])
		}
	}
	return s.controller
}

// word is one that says what has happened: names of objects, addresses, numbers and IDs have
// signs or digits in them.
var word = regexp.MustCompile(`^[A-Za-z']+$`)

// nameOf names the kind of an error: who met it, at what, and its words without those that
// name single objects.
func nameOf(controller, msg string, err error) string {
	parts := []string{controller, msg}
	if err == nil {
		return strings.Join(parts, "\n")
	}
	for text := range strings.FieldsSeq(err.Error()) {
		text = strings.Trim(text, `.,;:()[]"`)
		if word.MatchString(text) {
			parts = append(parts, text)
		}
		if len(parts) == kindWords+2 {
			break
		}
	}
	return strings.Join(parts, "\n")
}
