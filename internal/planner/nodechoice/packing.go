package nodechoice

import (
	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// packing is a problem for the packer, with the way back.
type packing struct {
	problem binpack.Problem
	// options are the space's options behind the bin types.
	options []int
	// bin is, by option, the bin type, or -1.
	bin []int32
	// sets are the sets of bin types by the address of the sets of options, which
	// classes share.
	sets map[*uint64]bitset.Set
	// cells is storage for vectors yet to be laid out, each with room for so many
	// groups.
	cells  []int64
	groups int
}

// newPacking is an empty problem with bin types of so many options, and with room for
// groups.
func newPacking(options, groups int) *packing {
	k := &packing{bin: make([]int32, options), sets: map[*uint64]bitset.Set{}, groups: groups}
	for o := range k.bin {
		k.bin[o] = -1
	}
	return k
}

// addOptions makes every option of the set a bin type. It is called once, before
// binsFor, and leaves room for further bin types.
func (k *packing) addOptions(s *feasible.Space, set bitset.Set, dims []int, further int) {
	n := set.Count()
	k.options, k.problem.Bins = make([]int, 0, n), make([]binpack.Bin, 0, n+further)
	for o := range set.All {
		k.bin[o] = int32(len(k.options))
		k.options = append(k.options, o)
		bin := binpack.Bin{Capacity: k.project(s.Net(o), dims), Cost: int64(s.Options[o].Price), Max: -1}
		k.problem.Bins = append(k.problem.Bins, bin)
	}
}

// binsFor are the bin types of those of the options that have one. Callers do not change
// the set.
func (k *packing) binsFor(options bitset.Set) bitset.Set {
	if len(options) == 0 {
		return nil
	}
	set, ok := k.sets[&options[0]]
	if !ok {
		set = bitset.New(len(k.problem.Bins))
		for o := range options.All {
			if k.bin[o] >= 0 {
				set.Add(int(k.bin[o]))
			}
		}
		k.sets[&options[0]] = set
	}
	return set
}

// addGroups appends a dimension per group. It is called once, after all bins, of which the
// first ones are new nodes and the others existing ones, and after all classes.
func (k *packing) addGroups(groups []group, newNodes int) {
	for i := range groups {
		for b := range k.problem.Bins {
			holds := groups[i].capacity
			if b >= newNodes {
				holds = groups[i].onNodes
			}
			k.problem.Bins[b].Capacity = append(k.problem.Bins[b].Capacity, int64(holds))
		}
		for c := range k.problem.Classes {
			k.problem.Classes[c].Size = append(k.problem.Classes[c].Size, 0)
		}
		for _, c := range groups[i].members {
			k.problem.Classes[c].Size[k.problem.Dims] = 1
		}
		k.problem.Dims++
	}
}

// cellsAtOnce is for how many vectors storage is made at a time.
const cellsAtOnce = 256

// project lays a vector out along the dimensions that matter, with room for groups.
func (k *packing) project(v []int64, dims []int) []int64 {
	n := len(dims) + k.groups
	if len(k.cells) < n {
		k.cells = make([]int64, cellsAtOnce*n)
	}
	out := k.cells[:len(dims):n]
	k.cells = k.cells[n:]
	for i, d := range dims {
		out[i] = v[d]
	}
	return out
}

// addLines adds shared limits for the lines of the ledger that the filter selects. The
// bin types after those of the options draw on nothing.
func (k *packing) addLines(s *feasible.Space, ledger *feasible.Ledger, include func(line int) bool) {
	index := map[int]int{}
	for i, o := range k.options {
		for _, u := range s.Uses(o) {
			if !include(u.Line) {
				continue
			}
			at, ok := index[u.Line]
			if !ok {
				at = len(k.problem.Shared)
				index[u.Line] = at
				k.problem.Shared = append(k.problem.Shared, binpack.Shared{Left: ledger.Left(u.Line), Use: make([]int64, len(k.options))})
			}
			k.problem.Shared[at].Use[i] += u.Amount
		}
	}
}
