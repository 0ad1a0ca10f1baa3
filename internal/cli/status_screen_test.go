package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
)

// fullStatus has something for every line of the screen.
func fullStatus(at time.Time) *clusterStatus {
	then, later := metav1.NewTime(at.Add(-time.Hour)), metav1.NewTime(at.Add(time.Hour))
	long := strings.Repeat("why it is so ", 20)
	s := &clusterStatus{Cluster: "prod", Silent: true, Nodes: 90, PendingPods: 90, EvictionsNow: 9}
	s.Status = v1alpha1.SnapshotStatus{
		Region: "eastus", Written: then, OtherNodes: 3, PendingPods: 90, UsualBootSeconds: 70, RefusedOfferings: 1,
		Health:   v1alpha1.Health{Azure: long, Buying: long, Prerequisites: long},
		Machines: []v1alpha1.MachineUnderWay{{NodeClaim: "general-x", Ordered: then, Stage: "Launched", Trouble: long, GivenUp: &later}},
		Moves:    []v1alpha1.Move{{ID: "1", Node: "general-a", Reason: "Drifted", Stage: "Draining", Begun: then}},
		Leaving:  []v1alpha1.LeavingNode{{Node: "general-b", NodeClaim: "general-b", Since: then, BlockedBy: long}},
		Refusals: []v1alpha1.Refusal{{Size: "Standard_D4s_v5", Place: "eastus-1", Until: later, Why: "ZonalAllocationFailed"}},
		Quotas:   []v1alpha1.QuotaLine{{Name: "standardDSv5Family", Limit: 100, Used: 98}},
		LastPlan: &v1alpha1.Plan{ID: "hgz98vq7", At: then, Pods: 12, NewNodes: 3, HourlyCost: "0.570"},
		LastMoves: []v1alpha1.Move{
			{ID: "0", Node: "general-c", Reason: "Empty", Stage: "RolledBack", Begun: then, Ended: &then, Why: long},
		},
	}
	for i := range 12 {
		s.Status.NodePools = append(s.Status.NodePools, v1alpha1.NodePoolState{Name: fmt.Sprint("pool-", i), Nodes: int32(i), Frozen: long})
		s.Status.Pending = append(s.Status.Pending, v1alpha1.PendingWorkload{Workload: "Deployment default/q", Pods: 9, Pod: "default/q-1", Message: long})
	}
	return s
}

// The more there is to tell of everything else, the fewer NodePools are shown.
func TestStatusNeverOutgrowsTheScreen(t *testing.T) {
	at := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	quiet := func(s *clusterStatus) {
		s.Silent, s.Status.Health, s.Status.Pending, s.Status.PendingPods = false, v1alpha1.Health{Azure: "ok"}, nil, 0
	}
	for name, c := range map[string]struct {
		change func(*clusterStatus)
		// pools and notes are how many NodePools, and how many lines beside them, are shown.
		pools, notes int
	}{
		"everything at once":                         {func(*clusterStatus) {}, 1, 0},
		"no quota is scarce and nothing refused":     {func(s *clusterStatus) { s.Status.Quotas, s.Status.RefusedOfferings = nil, 0 }, 1, 2},
		"a healthy controller and no pod that waits": {quiet, 6, 3},
		"two NodePools":                              {func(s *clusterStatus) { quiet(s); s.Status.NodePools = s.Status.NodePools[:2] }, 2, 3},
		"nothing leaves, either":                     {func(s *clusterStatus) { quiet(s); s.Status.Leaving, s.Status.LastMoves = nil, nil }, 7, 3},
	} {
		s := fullStatus(at)
		c.change(s)
		screen := &statusScreen{clusterStatus: s, at: at, offered: func(text string) string { return text }}
		lines := strings.Split(strings.TrimSuffix(screen.String(), "\n"), "\n")
		pools, notes := 0, 0
		for _, line := range lines {
			if len([]rune(line)) > 80 {
				t.Errorf("%s: a line of %d columns: %s", name, len([]rune(line)), line)
			}
			switch {
			case strings.Contains(line, ": frozen why"), strings.Contains(line, "of no NodePool"):
				notes++
			case strings.HasPrefix(line, "pool-"):
				pools++
			}
		}
		if len(lines) > 24 || pools != c.pools || notes != c.notes {
			t.Errorf("%s: %d lines with %d NodePools and %d lines beside them, want at most 24, %d and %d:\n%s",
				name, len(lines), pools, notes, c.pools, c.notes, strings.Join(lines, "\n"))
		}
	}
}

func TestStatusTellsThatSpotPricesAreEstimates(t *testing.T) {
	at := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	for _, estimated := range []bool{true, false} {
		s := &clusterStatus{Cluster: "prod"}
		s.Status.Prices = v1alpha1.PriceSource{Source: "embedded table of 2026-11-01; spot prices are estimates", SpotEstimated: estimated}
		screen := &statusScreen{clusterStatus: s, at: at, offered: func(text string) string { return text }}
		if text := screen.String(); strings.Contains(text, "PRICES   embedded table of 2026-11-01; spot prices are estimates\n") != estimated {
			t.Errorf("estimated: %v, the screen is\n%s", estimated, text)
		}
	}
}
