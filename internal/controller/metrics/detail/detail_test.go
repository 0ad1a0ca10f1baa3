package detail

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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

// A counter of what Azure is asked for has another series with each node image, for ever. What is
// served is a series for each size, and none is lost in the sums.
func TestCountersDoNotGrowWithImagesAndZones(t *testing.T) {
	const images, zones, pools, sizes, codes = 20, 4, 5, 10, 6
	reg := prometheus.NewRegistry()
	labels := []string{"image", "size", "zone", "capacity_type", "nodepool"}
	started := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_instance_vm_create_start_total", Help: "of a test"}, labels)
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "karpenter_instance_vm_create_failure_total", Help: "of a test"},
		append(labels, "phase", "error_code"))
	reg.MustRegister(started, failed)
	for i := range images * zones * pools * sizes {
		values := []string{
			fmt.Sprint("image", i%images), fmt.Sprint("size", i/images%sizes), fmt.Sprint("zone", i/images/sizes%zones), "spot",
			fmt.Sprint("pool", i/images/sizes/zones),
		}
		started.WithLabelValues(values...).Inc()
		for code := range codes {
			failed.WithLabelValues(append(values, "sync", fmt.Sprint("code", code))...).Inc()
		}
	}
	if n := testutil.CollectAndCount(started); n != images*zones*pools*sizes {
		t.Fatalf("%d series count what was asked for, of %d kinds", n, images*zones*pools*sizes)
	}
	var want strings.Builder
	want.WriteString("# HELP karpenter_instance_vm_create_failure_total of a test\n# TYPE karpenter_instance_vm_create_failure_total counter\n")
	for code := range codes {
		fmt.Fprintf(&want, "karpenter_instance_vm_create_failure_total{capacity_type=\"spot\",error_code=\"code%d\",phase=\"sync\"} %d\n",
			code, images*zones*pools*sizes)
	}
	want.WriteString("# HELP karpenter_instance_vm_create_start_total of a test\n# TYPE karpenter_instance_vm_create_start_total counter\n")
	for size := range sizes {
		fmt.Fprintf(&want, "karpenter_instance_vm_create_start_total{capacity_type=\"spot\",size=\"size%d\"} %d\n", size, images*zones*pools)
	}
	if err := testutil.GatherAndCompare(Without(reg), strings.NewReader(want.String())); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(Without(reg)); err != nil || n != sizes+codes {
		t.Errorf("%d series are served, %v, want %d", n, err, sizes+codes)
	}
}
