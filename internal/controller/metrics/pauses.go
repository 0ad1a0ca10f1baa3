package metrics

import "github.com/prometheus/client_golang/prometheus"

// Pauses are the metrics of the reasons for which nothing is launched.
type Pauses struct{ paused *prometheus.GaugeVec }

// NewPauses registers the metrics.
func NewPauses(reg prometheus.Registerer) (*Pauses, error) {
	m := &Pauses{paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "nap_launches_paused", Help: "1 while nothing is launched, by reason, as the conditions of AKSNodeClasses have it.",
	}, []string{"reason"})}
	var err error
	m.paused = register(reg, m.paused, &err)
	return m, err
}

// Changed says that what was a reason is none any more, and what is one now; both may
// be empty.
func (m *Pauses) Changed(was, now string) {
	if was != "" {
		m.paused.DeleteLabelValues(was)
	}
	if now != "" {
		m.paused.WithLabelValues(now).Set(1)
	}
}
