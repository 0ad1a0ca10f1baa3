package image

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Count registers the metric of classes for which no image was found, under the name by
// which users of Karpenter on Azure know it, and makes the resolver count. Call it before
// anything is resolved. Two resolvers of a process share the metric.
func (r *Resolver) Count(reg prometheus.Registerer) error {
	const name = "karpenter_image_selection_error_count"
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: name, Help: "The number of errors encountered while selecting an image.",
	}, []string{"family"})
	err := reg.Register(failed)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if existing, ok := known.ExistingCollector.(*prometheus.CounterVec); ok {
			r.failed = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register metric %s: %w", name, err)
	}
	r.failed = failed
	return nil
}
