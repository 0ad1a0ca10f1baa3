package cloud

import (
	"slices"
	"testing"

	"github.com/nodeautoprovision/nap/internal/lab"
)

// TestLabsHaveDefaultNodePoolsWhereAskedFor: stories apply their own, and so do those who
// have nap in the place of Karpenter.
func TestLabsHaveDefaultNodePoolsWhereAskedFor(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{}, "None"}, {Options{DefaultNodePools: "Auto"}, "Auto"}, {Options{DefaultNodePools: "Auto", Release: "karpenter"}, "None"},
	} {
		variables := newRelease(c.options, "nap", nil).chart(nil).Variables
		if !slices.Contains(variables, "DEFAULT_NODE_POOLS="+c.want) {
			t.Errorf("%+v: not %s in %q", c.options, c.want, variables[:2])
		}
	}
	if _, err := Complete(lab.Config{}, Options{DefaultNodePools: "Some"}, "nap"); err == nil {
		t.Error("Some is taken")
	}
}
