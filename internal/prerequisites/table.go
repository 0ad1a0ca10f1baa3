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

// Names of rows that the code refers to.
const (
	rowManagedMode = "node-provisioning-mode"
	rowPower       = "power-state"
)

var needsCluster = []Source{SourceCluster}
