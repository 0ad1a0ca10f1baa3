// Package metricstest reads metrics in tests as a scrape would.
package metricstest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Value returns the value of a counter or gauge, summed over the series of which
// some label has the value label, or over all with an empty one. It is 0 while
// there are none.
func Value(t *testing.T, reg prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
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
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
