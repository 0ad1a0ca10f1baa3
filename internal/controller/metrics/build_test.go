package metrics

import (
	"runtime/debug"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/controller/metrics/metricstest"
)

func TestBuildNamesKarpentersVersionAndOwnCommit(t *testing.T) {
	version, commit := builtFrom(&debug.BuildInfo{
		Deps:     []*debug.Module{{Path: "k8s.io/api", Version: "v0.36.1"}, {Path: "sigs.k8s.io/karpenter", Version: "v1.15.0"}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
	})
	if version != "v1.15.0" || commit != "abc" {
		t.Errorf("version %s of commit %s", version, commit)
	}
	if version, commit = builtFrom(nil); version != unknownBuild || commit != unknownBuild {
		t.Errorf("without any information: version %s of commit %s", version, commit)
	}
	registry := prometheus.NewRegistry()
	for range 2 { // two controllers in one process
		if err := RegisterBuild(registry); err != nil {
			t.Fatal(err)
		}
	}
	if n := metricstest.Value(t, registry, "karpenter_build_info", ""); n != 1 {
		t.Errorf("the metric is %v, want 1", n)
	}
}
