package binpack

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// Items that keep to themselves need a bin each. When there are many, large bins
// are no bargain: whatever else is to be packed has to go round.
func TestFirstPackingWithItemsThatNeedABinEach(t *testing.T) {
	rng := reduced.RNG(9)
	p := &Problem{Dims: 2, Bins: oneFamily()}
	all := bitset.Full(len(p.Bins))
	p.Classes = append(p.Classes, Class{Size: []int64{250, 1000}, Count: 200, PerBin: 1, Bins: all})
	for range 40 {
		cpu := 50 * int64(1+rng.Below(30))
		p.Classes = append(p.Classes, Class{Size: []int64{cpu, cpu * int64(1+rng.Below(7))}, Count: 5 + rng.Below(30), Bins: all})
	}
	s := Solve(p)
	if over := float64(s.Cost) / float64(s.LowerBound); over > 1.08 {
		t.Errorf("the first packing is %.4f times its bound, want at most 1.08", over)
	}
}
