package controller

import (
	"slices"

	"github.com/go-logr/logr"
)

// lateValues is a LogSink that formats the values of a logger only when a line is written.
// controller-runtime gives each reconciliation a logger with five values of its own, and
// hardly one in a hundred writes a line.
type lateValues struct {
	logr.LogSink // without the values
	values       []any
}

func (l lateValues) Info(level int, msg string, keysAndValues ...any) {
	l.LogSink.Info(level, msg, l.with(keysAndValues)...)
}

func (l lateValues) Error(err error, msg string, keysAndValues ...any) {
	l.LogSink.Error(err, msg, l.with(keysAndValues)...)
}

func (l lateValues) WithValues(keysAndValues ...any) logr.LogSink {
	return lateValues{l.LogSink, l.with(keysAndValues)}
}

func (l lateValues) WithName(name string) logr.LogSink {
	return lateValues{l.LogSink.WithName(name), l.values}
}

// with are the values and then those of a line. It shares no memory with either.
func (l lateValues) with(keysAndValues []any) []any { return slices.Concat(l.values, keysAndValues) }
