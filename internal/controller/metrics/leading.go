package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Leading says which replica acts. It is a manager's runnable, and runs on the leader alone.
// All that the leader measures is silent without it: an alert asks for this metric.
type Leading struct{ leading prometheus.Gauge }

// NewLeading registers the metric, as of a replica that waits.
func NewLeading(reg prometheus.Registerer) (*Leading, error) {
	var err error
	l := &Leading{register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "nap_leading", Help: "1 on the replica that acts, 0 on one that waits for its lease.",
	}), &err)}
	return l, err
}

// NeedLeaderElection makes the manager run it on the leader alone.
func (l *Leading) NeedLeaderElection() bool { return true }

// Start says that this replica acts, until the context ends.
func (l *Leading) Start(ctx context.Context) error {
	l.leading.Set(1)
	defer l.leading.Set(0)
	<-ctx.Done()
	return nil
}
