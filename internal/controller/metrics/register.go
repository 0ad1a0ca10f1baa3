package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// register registers a collector and returns it, or the one that is registered
// under its name already. An error is added to failed.
func register[C prometheus.Collector](reg prometheus.Registerer, c C, failed *error) C {
	err := reg.Register(c)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if existing, ok := known.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		*failed = errors.Join(*failed, fmt.Errorf("registering a metric: %w", err))
	}
	return c
}
