package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// BootstrapToken are the metrics of the tokens with which machines join.
type BootstrapToken struct {
	left, late prometheus.Gauge
	renewed    *prometheus.CounterVec
}

// NewBootstrapToken registers the metrics.
func NewBootstrapToken(reg prometheus.Registerer) (*BootstrapToken, error) {
	m := &BootstrapToken{
		left: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nap_bootstrap_token_seconds_left", Help: "Time until the bootstrap token that new machines get ends; 0 without one.",
		}),
		late: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nap_bootstrap_token_renewal_late_seconds",
			Help: "By how long the renewal of that token is late; 0 while it is not, and without a token.",
		}),
		renewed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_bootstrap_token_renewals_total", Help: "Bootstrap tokens that were to be made, by result: made or failed.",
		}, []string{"result"}),
	}
	var err error
	m.left = register(reg, m.left, &err)
	m.late = register(reg, m.late, &err)
	m.renewed = register(reg, m.renewed, &err)
	return m, err
}

// Left measures how long the present token lives, and by how long its renewal is late.
func (m *BootstrapToken) Left(left, late time.Duration) {
	m.left.Set(left.Seconds())
	m.late.Set(late.Seconds())
}

// Renewed counts a token that was made, or could not be made.
func (m *BootstrapToken) Renewed(ok bool) {
	result := "made"
	if !ok {
		result = "failed"
	}
	m.renewed.WithLabelValues(result).Inc()
}
