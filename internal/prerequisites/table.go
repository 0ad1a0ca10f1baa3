package prerequisites

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// Table lists every prerequisite by its number.
func Table() []Row {
	return slices.Concat(clusterRows(), networkRows(), trafficRows(), accessRows(), clusterObjectRows())
}

// Refusals are the prerequisites that a managed cluster does not meet and that keep nap
// from buying, without the node provisioning mode and the power state, which
// [managedcluster.Facts.Pause] looks at.
func Refusals(facts *managedcluster.Facts) []Result {
	var out []Result
	f := &Facts{Cluster: facts}
	for _, row := range Table() {
		if !row.Blocks || row.Name == rowManagedMode || row.Name == rowPower || !slices.Equal(row.needs, needsCluster) {
			continue
		}
		if r := row.result(f); r.Verdict == Failed {
			out = append(out, r)
		}
	}
	return out
}

// BeforeInstall are the results of [Check] without those of what an installation of nap
// brings itself: its role, its definitions, its token.
func BeforeInstall(results []Result) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool {
		return r.Name == rowRole || r.Name == rowDefinitions || r.Name == rowToken || r.Name == rowAccount
	})
}

// RowManagedGPU is the name of the row of the preview feature that managed GPUs need.
const RowManagedGPU = "managed-gpu-feature"

// Names of rows that this package alone refers to.
const (
	rowManagedMode = "node-provisioning-mode"
	rowPower       = "power-state"
	rowRole        = "role-of-nap"
	rowDefinitions = "definitions"
	rowToken       = "bootstrap-token"
	rowAccount     = "role-in-cluster"
)

var needsCluster = []Source{SourceCluster}
