package cli

import (
	"strings"
	"testing"
)

func TestPlanSaysWhatFewerNodesCost(t *testing.T) {
	report := &planReport{Summary: planSummary{Pods: 2, Scheduled: 2, NewNodes: 1, HourlyCost: 0.35, LowerBound: 0.349, GapPercent: 0.29}}
	for fewer, want := range map[int]bool{0: false, 2: true} {
		report.Summary.FewerNodes, report.Summary.FewerCost = fewer, 0.001
		table := &planTable{planReport: report}
		table.headline()
		if got := table.out.String(); strings.Contains(got, "is paid for 2 nodes fewer") != want {
			t.Errorf("%d nodes fewer: %q", fewer, got)
		}
	}
}
