package judge

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var (
	clusters = flag.Int("clusters", 150, "how many generated clusters to judge; of large ones a twentieth")
	first    = flag.Int("first", 0, "the seed of the first cluster")
)

// TestSchedulerAcceptsPlannedPlaces plans generated clusters with
// every kind of rule, and lets the real scheduler's filters judge every placement.
func TestSchedulerAcceptsPlannedPlaces(t *testing.T) {
	replay := filepath.Join(t.TempDir(), "replay")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", replay, "./bench/cmd/replay")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the planner's replay: %v\n%s", err, out)
	}
	t.Run("the usual", func(t *testing.T) { judgeAll(t, replay, "usual", *clusters) })
	t.Run("everything", func(t *testing.T) { judgeAll(t, replay, "wide", *clusters) })
	t.Run("many pods", func(t *testing.T) { judgeAll(t, replay, "large", max(1, *clusters/20)) })
}

// judgeAll judges so many clusters of a family, from the flag's seed on.
func judgeAll(t *testing.T, replay, family string, clusters int) {
	worlds, err := exec.CommandContext(t.Context(), replay, "-family", family,
		fmt.Sprint("-first=", *first), fmt.Sprint("-count=", clusters)).Output()
	if err != nil {
		t.Fatalf("plan the clusters: %v", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(worlds))
	lines.Buffer(nil, 64<<20)
	judged, seen := 0, 0
	for seed := *first; lines.Scan(); seed++ {
		n, refused, err := Judge(t.Context(), lines.Bytes())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		judged, seen = judged+n, seen+1
		for _, r := range refused {
			t.Errorf("seed %d: %s", seed, r)
		}
	}
	t.Logf("%d pods of %d clusters judged", judged, seen)
	if seen != clusters || judged < 5*seen {
		t.Errorf("only %d pods of %d clusters were judged", judged, seen)
	}
}

const world = `{"kind":"List","apiVersion":"v1","items":[
{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/hostname":"a","zone":"1"}},"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":"2","pods":"3","memory":"8Gi"}}},
{"kind":"Node","apiVersion":"v1","metadata":{"name":"b","labels":{"kubernetes.io/hostname":"b","zone":"2"}},"status":{"allocatable":{"cpu":"2","pods":"3","memory":"8Gi"}}},
{"kind":"Pod","apiVersion":"v1","metadata":{"name":"there","namespace":"default","labels":{"app":"x"}},"spec":{"nodeName":"b","containers":[{"name":"c","resources":{"requests":{"cpu":"1500m"}}}]}},
%s]}`

func TestJudgeRefusesEveryKindOfMistake(t *testing.T) {
	pod := func(node, spec string) string {
		return fmt.Sprintf(
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default","labels":{"app":"x"},"annotations":{"nap.azure.com/planned":"true"}},"spec":{"nodeName":%q,%s"containers":[{"name":"c","resources":{"requests":{"cpu":"400m"}}}]}}`, node, spec)
	}
	for name, c := range map[string]struct{ pod, plugin string }{
		"allowed":    {pod("b", ""), ""},
		"a taint":    {pod("a", ""), "TaintToleration"},
		"a selector": {pod("b", `"nodeSelector":{"zone":"1"},`), "NodeAffinity"},
		"an affinity": {pod("b",
			`"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"x"}}}]}},`), "InterPodAffinity"},
		"a spread": {pod("b",
			`"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"x"}}}],`), "PodTopologySpread"},
		"no room":       {strings.Replace(pod("b", ""), "400m", "600m", 1), "NodeResourcesFit"},
		"no such node":  {pod("c", ""), "none"},
		"a lost volume": {pod("b", `"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"gone"}}],`), "VolumeRestrictions"},
	} {
		n, refused, err := Judge(t.Context(), []byte(fmt.Sprintf(world, c.pod)))
		if err != nil || n != 1 {
			t.Fatalf("%s: judged %d pods, %v", name, n, err)
		}
		got := ""
		if len(refused) > 0 {
			got = refused[0].Plugin
		}
		if got != c.plugin {
			t.Errorf("%s: refused by %q, want %q: %v", name, got, c.plugin, refused)
		}
	}
}

// A pod on a node that exists comes before a machine starts, and counts without it.
func TestJudgeKnowsWhatStartsLater(t *testing.T) {
	const spread = `"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"y"}}}],`
	const machine = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"new","labels":{"kubernetes.io/hostname":"new"}%s},"status":{"allocatable":{"cpu":"2","pods":"9","memory":"8Gi"}}}`
	pod := func(name, node string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","labels":{"app":"y"},"annotations":{"nap.azure.com/planned":"true"}},`+
			`"spec":{"nodeName":%q,%s"tolerations":[{"key":"gpu"}],"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}]}}`, name, node, spread)
	}
	full := strings.Join([]string{pod("1", "a"), pod("2", "a"), pod("3", "b"), pod("4", "b")}, ",")
	for name, c := range map[string]struct {
		more    string
		refused int
	}{
		"two on each":                  {full, 0},
		"beside a node that is there":  {full + "," + fmt.Sprintf(machine, ""), 4},
		"beside a node that will come": {full + "," + fmt.Sprintf(machine, `,"annotations":{"nap.azure.com/planned":"true"}`), 0},
		"too many where it will come": {fmt.Sprintf(machine, `,"annotations":{"nap.azure.com/planned":"true"}`) + "," +
			pod("1", "new") + "," + pod("2", "new"), 2},
	} {
		_, refused, err := Judge(t.Context(), []byte(fmt.Sprintf(world, c.more)))
		if err != nil || len(refused) != c.refused {
			t.Errorf("%s: refused %v, want %d, error %v", name, refused, c.refused, err)
		}
	}
}
