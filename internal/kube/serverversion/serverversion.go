// Package serverversion knows which Kubernetes version an API server serves, by its answer
// to GET /version.
package serverversion

import (
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// Of is the version that an API server serves, as 1.36.0, without what a vendor adds. A
// server that emulates an earlier minor version is of that one: its nodes must not be newer
// (kubernetes.io/docs/concepts/cluster-administration/compatibility-version). It does not
// say which patch it emulates, so that the first one is taken, which every minor version has.
func Of(info *version.Info) string {
	if info.EmulationMajor != "" && info.EmulationMinor != "" &&
		(info.EmulationMajor != info.Major || info.EmulationMinor != digits(info.Minor)) {
		return info.EmulationMajor + "." + info.EmulationMinor + ".0"
	}
	plain, _, _ := strings.Cut(strings.TrimPrefix(info.GitVersion, "v"), "-")
	plain, _, _ = strings.Cut(plain, "+")
	return plain
}

// digits are those at the front: some vendors write a minor version as 34+.
func digits(minor string) string { return strings.TrimRight(minor, "+") }
