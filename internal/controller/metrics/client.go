package metrics

import (
	"context"
	"errors"
	"fmt"

	opmetrics "github.com/awslabs/operatorpkg/metrics"
	"github.com/prometheus/client_golang/prometheus"
	clientmetrics "k8s.io/client-go/tools/metrics"
)

// RegisterClient registers Karpenter's metrics of requests to the API server,
// client_go_request_total and client_go_request_duration_seconds. What counts them already,
// as controller-runtime's rest_client_requests_total, goes on. Call it before clients are at
// work: it changes where all of them count. The second call of a process changes nothing.
func RegisterClient(reg prometheus.Registerer) error {
	counted, timed := clientmetrics.RequestResult, clientmetrics.RequestLatency
	karpenters := prometheus.NewRegistry()
	opmetrics.RegisterClientMetrics(karpenters)
	if err := reg.Register(karpenters); err != nil {
		clientmetrics.RequestResult, clientmetrics.RequestLatency = counted, timed
		if _, known := errors.AsType[prometheus.AlreadyRegisteredError](err); known {
			return nil
		}
		return fmt.Errorf("registering the metrics of requests to the API server: %w", err)
	}
	clientmetrics.RequestResult = requestResults{counted, clientmetrics.RequestResult}
	return nil
}

// requestResults counts a request wherever it is to be counted.
type requestResults []clientmetrics.ResultMetric

// Increment implements clientmetrics.ResultMetric.
func (r requestResults) Increment(ctx context.Context, code, method, host string) {
	for _, metric := range r {
		metric.Increment(ctx, code, method, host)
	}
}
