package launch

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
)

// Two providers of a process count in the same place.
func TestMetricsAreSharedInARegistry(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		m, err := NewMetrics(registry, "eastus", false)
		if err != nil {
			t.Fatal(err)
		}
		m.start(NodeSpec{SKU: &instancetype.SKU{Name: "Standard_D4s_v5"}, Zone: "1"})
		if got := m.started[false].WithLabelValues("", "Standard_D4s_v5", "eastus-1", "", ""); testutil.ToFloat64(got) == 0 {
			t.Error("the machine is not counted")
		}
	}
	m, err := NewMetrics(registry, "eastus", true)
	if err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(m.started[false].WithLabelValues("", "Standard_D4s_v5", "eastus-1", "", "")); n != 2 {
		t.Errorf("counted %v machines, want 2", n)
	}
}
