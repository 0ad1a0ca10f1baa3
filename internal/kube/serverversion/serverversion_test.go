package serverversion

import (
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

func TestVersionThatServerServes(t *testing.T) {
	for _, c := range []struct {
		name string
		info version.Info
		want string
	}{
		{"a release", version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.2"}, "1.36.2"},
		{"what a vendor adds", version.Info{Major: "1", Minor: "36+", GitVersion: "v1.36.2-eks-1"}, "1.36.2"},
		{"build data", version.Info{GitVersion: "v1.36.2+k3s1"}, "1.36.2"},
		{"its own version, said as emulated",
			version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "37"}, "1.37.1"},
		{"its own version with a vendor's plus",
			version.Info{Major: "1", Minor: "37+", GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "37"}, "1.37.1"},
		{"an earlier one",
			version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "36"}, "1.36.0"},
		{"one half of an emulated version", version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1", EmulationMinor: "36"}, "1.37.1"},
	} {
		if got := Of(&c.info); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
