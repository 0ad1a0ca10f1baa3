package metrics

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientmetrics "k8s.io/client-go/tools/metrics"
)

// counter counts requests, as controller-runtime's does.
type counter struct{ n int }

func (c *counter) Increment(context.Context, string, string, string) { c.n++ }

// Requests are counted under Karpenter's names, with its labels, and where they were counted
// before. A second registration changes nothing.
func TestRequestsAreCountedAsByKarpenter(t *testing.T) {
	counted, timed := clientmetrics.RequestResult, clientmetrics.RequestLatency
	t.Cleanup(func() { clientmetrics.RequestResult, clientmetrics.RequestLatency = counted, timed })
	before, reg := &counter{}, prometheus.NewRegistry()
	clientmetrics.RequestResult = before
	for range 2 {
		if err := RegisterClient(reg); err != nil {
			t.Fatal(err)
		}
	}
	clientmetrics.RequestResult.Increment(t.Context(), "200", "GET", "cluster.test")
	clientmetrics.RequestLatency.Observe(t.Context(), "GET", url.URL{Path: "/api/v1/namespaces/{namespace}/pods/{name}"}, time.Second)
	if before.n != 1 {
		t.Errorf("the request was counted %d times where it was before, want once", before.n)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]int{"client_go_request_total": 2, "client_go_request_duration_seconds": 5}
	for _, family := range families {
		if want, n := labels[family.GetName()], len(family.GetMetric()); n != 1 || len(family.GetMetric()[0].GetLabel()) != want {
			t.Errorf("%s has %d series, want one with %d labels: %v", family.GetName(), n, want, family)
		}
		delete(labels, family.GetName())
	}
	if len(labels) > 0 {
		t.Errorf("missing are %v", labels)
	}
}
