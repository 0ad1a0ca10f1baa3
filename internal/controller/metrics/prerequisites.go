package metrics

import "github.com/prometheus/client_golang/prometheus"

// Prerequisites are the metrics of the checks of what nap needs.
type Prerequisites struct{ failed *prometheus.GaugeVec }

// NewPrerequisites registers the metrics.
func NewPrerequisites(reg prometheus.Registerer) (*Prerequisites, error) {
	m := &Prerequisites{failed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "nap_prerequisite_failed",
		Help: "1 while a prerequisite is not met, 0 while it is, by check, as docs/prerequisites.md names them; none while it is not known.",
	}, []string{"check"})}
	var err error
	m.failed = register(reg, m.failed, &err)
	return m, err
}

// Known says whether a prerequisite is met.
func (m *Prerequisites) Known(check string, met bool) {
	value := 1.0
	if met {
		value = 0
	}
	m.failed.WithLabelValues(check).Set(value)
}

// Unknown says that it is not known whether a prerequisite is met.
func (m *Prerequisites) Unknown(check string) { m.failed.DeleteLabelValues(check) }
