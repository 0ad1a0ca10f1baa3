package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// unknownBuild stands for what the toolchain did not write into the program.
const unknownBuild = "unspecified"

// RegisterBuild registers Karpenter's metric that says what the program was built from:
// the version of Karpenter in it, its own commit, and Go's version and architecture.
func RegisterBuild(reg prometheus.Registerer) error {
	info, _ := debug.ReadBuildInfo()
	version, commit := builtFrom(info)
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "karpenter_build_info", Help: "A metric with a constant '1' value labeled by version from which karpenter was built.",
		ConstLabels: prometheus.Labels{
			"version": version, "goversion": runtime.Version(), "goarch": runtime.GOARCH, "commit": commit,
		},
	})
	var err error
	g = register(reg, g, &err)
	g.Set(1)
	return err
}

// builtFrom reads the version of Karpenter and the commit; info is nil where the
// toolchain wrote nothing.
func builtFrom(info *debug.BuildInfo) (version, commit string) {
	version, commit = unknownBuild, unknownBuild
	if info == nil {
		return version, commit
	}
	for _, m := range info.Deps {
		if m.Path == "sigs.k8s.io/karpenter" {
			version = m.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return version, commit
}
