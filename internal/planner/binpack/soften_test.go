package binpack

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/planner/binpack/reduced"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
)

// oneFamily sells bins of 1 to 32 units of processor time with four of memory
// each, for the same price a unit.
func oneFamily() []Bin {
	var out []Bin
	for n := int64(1); n <= 32; n *= 2 {
		out = append(out, Bin{Capacity: []int64{1000*n - 60, 4000*n - 100}, Cost: 48_000 * n, Max: -1})
	}
	return out
}

// A linear program takes a resource that is a little less scarce than another for
// worthless. Filling bins by its prices leaves the items that need most of it to
// the end.
func TestFirstPackingBalancesNearlyScarceResources(t *testing.T) {
	rng := reduced.RNG(5)
	p := &Problem{Dims: 2, Bins: oneFamily()}
	all := bitset.Full(len(p.Bins))
	for range 60 {
		cpu := 50 * int64(1+rng.Below(40))
		p.Classes = append(p.Classes, Class{Size: []int64{cpu, cpu * int64(1+rng.Below(7))}, Count: 10 + rng.Below(30), Bins: all})
	}
	s := Solve(p)
	if over := float64(s.Cost) / float64(s.LowerBound); over > 1.03 {
		t.Errorf("the first packing is %.4f times its bound, want at most 1.03", over)
	}
}
