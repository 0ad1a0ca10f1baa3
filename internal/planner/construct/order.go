package construct

import (
	"cmp"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// order sorts the valid classes: higher priority first, then those that must meet on
// nodes, so that others may join them there, those that others wait for, those that
// can only go to existing nodes, the more constrained, and the larger. Strategies
// change single criteria.
func order(in *instance.Instance, st Strategy, nodes []*placement.Place, index *OptionIndex) []int {
	bySize := BySize
	if st.ByUnitCost {
		bySize = byUnitCost(in, index)
	}
	var suiting []int
	if st.FewestNodes {
		suiting = suitingNodes(in, nodes)
	}
	var out []int
	for i := range in.Classes {
		if in.Classes[i].Invalid == "" {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y int) int {
		a, b := &in.Classes[x], &in.Classes[y]
		if c := cmp.Compare(b.Priority, a.Priority); c != 0 && !st.IgnorePriority {
			return c
		}
		if st.FewestNodes {
			if c := cmp.Compare(suiting[x], suiting[y]); c != 0 {
				return c
			}
		}
		if st.Join {
			return bySize(a, b)
		}
		if c := cmp.Or(falseFirst(!a.Colocated, !b.Colocated), cmp.Compare(a.Depth, b.Depth), falseFirst(a.Buyable, b.Buyable)); c != 0 {
			return c
		}
		if c := cmp.Compare(b.Bound, a.Bound); c != 0 && !st.BySize {
			return c
		}
		return bySize(a, b)
	})
	return out
}

// falseFirst puts false before true.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// suitingNodes counts, by class, the nodes that it may go to.
func suitingNodes(in *instance.Instance, nodes []*placement.Place) []int {
	out := make([]int, len(in.Classes))
	for i := range in.Classes {
		for _, pl := range nodes {
			if l := in.Classes[i].Levels; len(l) > 0 && l[len(l)-1].Nodes.Has(pl.Node) {
				out[i]++
			}
		}
	}
	return out
}

// byUnitCost puts the class first of which a pod costs more where it costs least on a
// node full of such pods: the room of existing nodes saves most if it goes to such
// pods. Classes for which no option is worth buying come first.
func byUnitCost(in *instance.Instance, index *OptionIndex) func(x, y *instance.Class) int {
	cost := make([]float64, len(in.Classes))
	for i := range in.Classes {
		cost[i] = math.Inf(1)
		if l := in.Classes[i].Levels; len(l) > 0 {
			for o := range l[len(l)-1].Options.All {
				if index.worth.Has(o) {
					cost[i] = min(cost[i], index.fluidCost(&in.Classes[i], o))
				}
			}
		}
	}
	return func(x, y *instance.Class) int {
		return cmp.Or(cmp.Compare(cost[y.Index], cost[x.Index]), BySize(x, y))
	}
}

// BySize puts the larger class first: by CPU, then by memory.
func BySize(a, b *instance.Class) int {
	return cmp.Or(cmp.Compare(b.Own[0], a.Own[0]), cmp.Compare(b.Own[1], a.Own[1]), cmp.Compare(a.Index, b.Index))
}
