package detail

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// served are the families that a filtered server shows of a registry with one of each kind.
func served(t *testing.T) []string {
	t.Helper()
	reg := prometheus.NewRegistry()
	for name, labels := range map[string][]string{
		"karpenter_nodes_allocatable": {"node_name", "nodepool"}, "karpenter_pods_state": {"name", "namespace"},
		"karpenter_nodepools_usage": {"nodepool", "resource_type"}, "karpenter_nodes_created_total": {"nodepool"},
		"operator_nodeclaim_status_condition_count": {"name", "type"}, "operator_nodepool_status_condition_count": {"name", "type"},
		"workqueue_depth": {"name"}, "rest_client_requests_total": {"code"}, "controller_runtime_reconcile_total": {"controller"},
		"leader_election_master_status": {"name"}, "nap_launches_paused": {"reason"},
	} {
		gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "of a test"}, labels)
		reg.MustRegister(gauge)
		gauge.WithLabelValues(labels...).Set(1)
	}
	handler, err := Filter(reg)(logr.Discard(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, Path, nil))
	var names []string
	for line := range strings.Lines(answer.Body.String()) {
		if name, _, sample := strings.Cut(line, "{"); sample {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	other := httptest.NewRecorder()
	handler.ServeHTTP(other, httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil))
	if other.Code != http.StatusNotFound {
		t.Errorf("another path: %d, want that of its handler", other.Code)
	}
	return names
}

func TestFilterLeavesOutWhatGrowsAndMachinery(t *testing.T) {
	want := []string{
		"karpenter_nodepools_usage", "karpenter_nodes_created_total", "leader_election_master_status", "nap_launches_paused",
		"operator_nodepool_status_condition_count",
	}
	if got := served(t); !slices.Equal(got, want) {
		t.Errorf("served are %q, want %q", got, want)
	}
}
