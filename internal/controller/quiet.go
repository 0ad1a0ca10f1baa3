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
