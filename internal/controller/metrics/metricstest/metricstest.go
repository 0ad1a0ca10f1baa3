// Package metricstest reads metrics in tests as a scrape would.
package metricstest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Value returns the value of a counter or gauge, summed over the series of which
// some label has the value label, or over all with an empty one. It is 0 while
// there are none.
func Value(t *testing.T, reg prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	sum := 0.0
	for _, m := range series(t, reg, name, label) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

// Observations returns how many values a histogram has seen, over the series of which
// some label has the value label, or over all with an empty one.
func Observations(t *testing.T, reg prometheus.Gatherer, name, label string) int {
	t.Helper()
	sum := uint64(0)
	for _, m := range series(t, reg, name, label) {
		sum += m.GetHistogram().GetSampleCount()
	}
	return int(sum)
}

// Series returns how many series a metric has of which some label has the value label,
// or how many in all with an empty one.
func Series(t *testing.T, reg prometheus.Gatherer, name, label string) int {
	t.Helper()
	return len(series(t, reg, name, label))
}

func series(t *testing.T, reg prometheus.Gatherer, name, label string) []*dto.Metric {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []*dto.Metric
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			carries := label == ""
			for _, l := range m.GetLabel() {
				carries = carries || l.GetValue() == label
			}
			if carries {
				out = append(out, m)
			}
		}
	}
	return out
}
