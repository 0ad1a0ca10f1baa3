package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPhasesAreReadInOrderOfTheirEnd(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a_performance_report.json": `{"test_name": "Shrink", "timestamp": "2026-11-24T10:05:00Z", "total_time": 60000000000, "total_pods": 700}`,
		"b_performance_report.json": `{"test_name": "Grow", "timestamp": "2026-11-24T10:00:00Z", "total_time": 51213348570, "total_pods": 1000,
		  "total_nodes": 172, "pods_disrupted": 3, "total_reserved_cpu_utilization": 0.81394, "total_reserved_memory_utilization": 0.834,
		  "karpenter_max_memory_mb": 221.12, "karpenter_p95_heap_mb": 81.76, "karpenter_avg_cpu_cores": 0.38712}`,
		"other.json": `{`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readPhases(dir)
	grow := Phase{
		Name: "Grow", Seconds: 51.2, Pods: 1000, Nodes: 172, Disrupted: 3, CPUUse: 0.814, MemoryUse: 0.834, Memory: 221, Heap: 82, Cores: 0.387,
	}
	if err != nil || len(got) != 2 || got[0] != grow || got[1] != (Phase{Name: "Shrink", Seconds: 60, Pods: 700}) {
		t.Errorf("%+v, %v", got, err)
	}
	r := &Record{Specs: map[string][]string{"performance": {"basic"}}}
	r.Add(Result{Suite: "performance", Engine: EngineNap, Spec: "basic", State: Passed, Phases: got})
	want := "| basic | Grow | nap | 51.2 s | 1000 | 172 | 3 | 81% | 83% | 221 MB | 82 MB | 0.39 |"
	if page := Tables(r); !strings.Contains(page, want) {
		t.Errorf("the page lacks %s:\n%s", want, page)
	}
	if err := os.WriteFile(filepath.Join(dir, "c_performance_report.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readPhases(dir); err == nil || !strings.Contains(err.Error(), "c_performance_report.json") {
		t.Errorf("a report that is cut off: %v", err)
	}
}

// Every figure that is read has the name that the suite gives it.
func TestFiguresOfPhasesAreTheSuites(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", karpenterModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	types, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "test/suites/performance/types.go"))
	if err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[phaseReport]().Fields() {
		if tag := field.Tag.Get("json"); !strings.Contains(string(types), "`json:\""+tag+"\"`") {
			t.Errorf("the suite's report has no field %q", tag)
		}
	}
}
