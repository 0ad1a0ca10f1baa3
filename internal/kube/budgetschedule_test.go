package kube

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/internal/model"
)

// Schedules are of UTC, and windows that meet end together.
func TestEndOfBudgetSchedules(t *testing.T) {
	scheduled := func(schedule string, lasts time.Duration, reasons ...v1.DisruptionReason) v1.Budget {
		return v1.Budget{Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: lasts}, Reasons: reasons}
	}
	now := time.Date(2026, 3, 2, 12, 0, 30, 0, time.UTC)
	for name, c := range map[string]struct {
		budgets []v1.Budget
		want    string
	}{
		"no schedule":      {budgets: []v1.Budget{{Nodes: "0"}}},
		"not in force":     {budgets: []v1.Budget{scheduled("0 13 * * *", time.Hour)}},
		"in force":         {budgets: []v1.Budget{scheduled("0 12 * * *", time.Hour)}, want: "2026-03-02T13:00:00Z"},
		"all but a minute": {budgets: []v1.Budget{scheduled("0 18 * * *", 24*time.Hour-time.Minute)}, want: "2026-03-02T17:59:00Z"},
		"another reason":   {budgets: []v1.Budget{scheduled("0 12 * * *", time.Hour, v1.DisruptionReasonDrifted)}},
		"this reason":      {budgets: []v1.Budget{scheduled("0 12 * * *", time.Hour, v1.DisruptionReasonEmpty)}, want: "2026-03-02T13:00:00Z"},
		"the first of two": {budgets: []v1.Budget{scheduled("0 9 * * *", 5*time.Hour), scheduled("0 12 * * *", time.Hour)},
			want: "2026-03-02T13:00:00Z"},
		"windows that meet":  {budgets: []v1.Budget{scheduled("0-9 12 * * *", time.Minute)}, want: "2026-03-02T12:10:00Z"},
		"without a pause":    {budgets: []v1.Budget{scheduled("@daily", 24*time.Hour)}, want: "2026-05-06T00:00:00Z"},
		"one cannot be read": {budgets: []v1.Budget{scheduled("* * 99 * *", time.Hour)}},
	} {
		var got time.Time
		if ends := budgetEnds(c.budgets); ends != nil {
			got = ends(now.In(time.FixedZone("CET", 3600)), model.DisruptEmpty)
		}
		if text := got.Format(time.RFC3339); text != c.want && (c.want != "" || !got.IsZero()) {
			t.Errorf("%s: the end is %s, want %q", name, text, c.want)
		}
	}
}
