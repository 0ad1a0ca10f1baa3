package metrics

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestDollarLimitsAreReadWhenAskedFor(t *testing.T) {
	reg := prometheus.NewRegistry()
	used := model.USD(0.2)
	err := NewDollarLimits(reg, func(context.Context) ([]fleet.DollarLimit, error) {
		return []fleet.DollarLimit{{Pool: "general", Limit: model.USD(0.6), Used: used}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	used = model.USD(0.624)
	want := `# HELP nap_nodepool_limit_dollars_per_hour The most that the nodes of the NodePool may cost per hour together (karpenter.azure.com/max-hourly-cost).
# TYPE nap_nodepool_limit_dollars_per_hour gauge
nap_nodepool_limit_dollars_per_hour{nodepool="general"} 0.6
# HELP nap_nodepool_used_dollars_per_hour What counts for the limit of the NodePool in dollars per hour; nodes of which it is unknown are left out.
# TYPE nap_nodepool_used_dollars_per_hour gauge
nap_nodepool_used_dollars_per_hour{nodepool="general"} 0.624
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
