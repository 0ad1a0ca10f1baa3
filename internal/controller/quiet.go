package controller

import (
	"slices"

	"github.com/go-logr/logr"
)

// startupChatter lists the lines that controller-runtime writes for each of some
// fifty controllers at every start.
func startupChatter() []string {
	return []string{"Starting EventSource", "Starting Controller", "Starting workers"}
}

// quietSink moves the start-up chatter to the debug level.
type quietSink struct{ logr.LogSink }

func (q quietSink) Info(level int, msg string, keysAndValues ...any) {
	if level == 0 && slices.Contains(startupChatter(), msg) {
		level = 1
		if !q.Enabled(level) {
			return
		}
	}
	q.LogSink.Info(level, msg, keysAndValues...)
}

func (q quietSink) WithValues(keysAndValues ...any) logr.LogSink {
	return quietSink{q.LogSink.WithValues(keysAndValues...)}
}

func (q quietSink) WithName(name string) logr.LogSink {
	return quietSink{q.LogSink.WithName(name)}
}

// results lists the lines that say what has become of a purchase or a removal.
func results() []string {
	return []string{
		"launched nodeclaim", "registered nodeclaim", "initialized nodeclaim", "deleted nodeclaim", "removed nodes", "rolled a command back",
	}
}

// doubtfulSink says of results that they may be another replica's where the lease is not held:
// a replica that was stopped and goes on sees what the leader of meanwhile has done, and takes it
// for its own before it learns that it does not lead any more.
type doubtfulSink struct {
	logr.LogSink
	held func() error
}

func (d doubtfulSink) Info(level int, msg string, keysAndValues ...any) {
	if slices.Contains(results(), msg) && d.held() != nil {
		keysAndValues = append(slices.Clip(keysAndValues), "doubt", "this replica does not hold the lease; another one may have done it")
	}
	d.LogSink.Info(level, msg, keysAndValues...)
}

func (d doubtfulSink) WithValues(keysAndValues ...any) logr.LogSink {
	return doubtfulSink{d.LogSink.WithValues(keysAndValues...), d.held}
}

func (d doubtfulSink) WithName(name string) logr.LogSink {
	return doubtfulSink{d.LogSink.WithName(name), d.held}
}
