package prerequisites

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// What is said of memory is what the benchmark of large clusters has measured.
func TestMemoryOfIsAsMeasured(t *testing.T) {
	text, err := os.ReadFile("../../bench/objects/testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var measured []struct {
		Nodes, Pods, Peak int64
		Engine            string
	}
	if err := json.Unmarshal(text, &measured); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range measured {
		if m.Engine != "nap" {
			continue
		}
		seen++
		if got := MemoryOf(m.Nodes, m.Pods); math.Abs(float64(got-m.Peak)) > float64(m.Peak)/8 {
			t.Errorf("%d nodes, %d pods: %d MB are said, %d MB were measured", m.Nodes, m.Pods, got/1e6, m.Peak/1e6)
		}
	}
	if seen < 3 {
		t.Errorf("%d sizes were measured, want three or more", seen)
	}
}

func TestMemoryLimitIsHeldAgainstTheSizeOfTheCluster(t *testing.T) {
	const gi = 1 << 30
	tests := map[string]struct {
		cluster    Kubernetes
		read, says string
		fix        string
	}{
		"not installed": {Kubernetes{Nodes: 5000, Pods: 50_000}, "no Deployment of nap", "", ""},
		"no limit":      {Kubernetes{Nodes: 5000, Pods: 50_000, Controller: Controller{Deployment: "a/nap"}}, "no limit", "", ""},
		"enough":        {Kubernetes{Nodes: 1000, Pods: 10_000, Controller: Controller{"a/nap", "nap", gi}}, "limit 1.0 Gi", "", ""},
		"many nodes": {Kubernetes{Nodes: 5000, Pods: 50_000, Controller: Controller{"nap-system/nap", "nap", gi}}, "5000 nodes, 50000 pods, limit 1.0 Gi",
			"a cluster of 5000 nodes and 50000 pods takes about 1.8 Gi, and a container of Deployment nap-system/nap may use 1.0 Gi",
			"helm upgrade nap charts/nap --namespace nap-system --reset-then-reuse-values --set resources.limits.memory=3Gi"},
		"many pods": {Kubernetes{Nodes: 600, Pods: 60_000, Controller: Controller{"a/b-nap", "b", gi}}, "60000 pods",
			"takes about 1.4 Gi", "helm upgrade b charts/nap --namespace a --reset-then-reuse-values --set resources.limits.memory=3Gi"},
		"enough for many": {Kubernetes{Nodes: 5000, Pods: 50_000, Controller: Controller{"a/nap", "nap", 3 * gi}}, "limit 3.0 Gi", "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := memoryEnough(&Facts{Kubernetes: &tc.cluster})
			if !strings.Contains(got.read, tc.read) || !strings.Contains(got.fault, tc.says) || !strings.Contains(got.fix, tc.fix) ||
				(got.fault == "") != (tc.says == "") {
				t.Errorf("read %q, fault %q, fix %q; want %q, %q, %q", got.read, got.fault, got.fix, tc.read, tc.says, tc.fix)
			}
		})
	}
}
