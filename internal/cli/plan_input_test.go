package cli

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/fleet"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// A NodePool is made up for files alone: on a cluster that has none, nothing is bought.
func TestDefaultNodePoolIsForFilesOnly(t *testing.T) {
	for live, want := range map[bool]int{false: 1, true: 0} {
		p := &planInput{store: fleet.NewStore(), pools: map[string]*v1.NodePool{}}
		p.completePools(live, true)
		if len(p.pools) != want {
			t.Errorf("live cluster %v: %d NodePools, want %d", live, len(p.pools), want)
		}
	}
}
