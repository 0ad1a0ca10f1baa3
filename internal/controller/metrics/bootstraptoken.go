package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// BootstrapToken are the metrics of the tokens with which machines join.
type BootstrapToken struct {
	left    prometheus.Gauge
	renewed *prometheus.CounterVec
}

// NewBootstrapToken registers the metrics.
func NewBootstrapToken(reg prometheus.Registerer) (*BootstrapToken, error) {
	m := &BootstrapToken{
		left: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "nap_bootstrap_token_seconds_left", Help: "Time until the bootstrap token that new machines get ends; 0 without one.",
		}),
		renewed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nap_bootstrap_token_renewals_total", Help: "Bootstrap tokens that were to be made, by result: made or failed.",
		}, []string{"result"}),
	}
	var err error
	m.left = register(reg, m.left, &err)
	m.renewed = register(reg, m.renewed, &err)
	return m, err
}

// Left measures how long the present token lives.
func (m *BootstrapToken) Left(left time.Duration) { m.left.Set(left.Seconds()) }

// Renewed counts a token that was made, or could not be made.
func (m *BootstrapToken) Renewed(ok bool) {
	result := "made"
	if !ok {
		result = "failed"
	}
	m.renewed.WithLabelValues(result).Inc()
}
