package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
)

// reduceOptions keeps the options worth buying: of options that no rule of the
// problem tells apart, those that no other one beats in both size and price.
// Of what runs out only reservations and the given scarce lines tell options
// apart, so whoever runs into another one must reduce again.
func reduceOptions(s *feasible.Space, w *topo.World, classes []class, scarce []int) feasible.Set {
	group := signatures(s, w, classes, scarce)
	dims := usedDims(s, classes)
	order := make([]int, 0, len(s.Options))
	total := make([]float64, len(s.Options))
	for o := range s.Available.All {
		order = append(order, o)
		for _, d := range dims {
			total[o] += float64(s.Options[o].Net[d])
		}
	}
	slices.SortFunc(order, func(x, y int) int {
		ox, oy := &s.Options[x], &s.Options[y]
		return cmp.Or(cmp.Compare(group[x], group[y]), cmp.Compare(ox.Price, oy.Price), cmp.Compare(total[y], total[x]), cmp.Compare(x, y))
	})
	out := feasible.NewSet(len(s.Options))
	var kept []int
	for i, o := range order {
		if i == 0 || group[order[i-1]] != group[o] {
			kept = kept[:0]
		}
		if !slices.ContainsFunc(kept, func(k int) bool { return covers(&s.Options[k], &s.Options[o], dims) }) {
			kept = append(kept, o)
			out.Add(o)
		}
	}
	return out
}

func covers(big, small *feasible.Option, dims []int) bool {
	for _, d := range dims {
		if small.Net[d] > big.Net[d] {
			return false
		}
	}
	return true
}

// usedDims are the dimensions in which some pod takes something.
func usedDims(s *feasible.Space, classes []class) []int {
	used := make([]bool, s.Dims)
	for i := range classes {
		if classes[i].invalid != "" {
			continue
		}
		for d, v := range classes[i].own {
			used[d] = used[d] || v > 0
		}
		for _, v := range classes[i].shared {
			used[s.DriverDim(v.Driver)] = true
		}
	}
	var dims []int
	for d, u := range used {
		if u {
			dims = append(dims, d)
		}
	}
	return dims
}

// signatures numbers the groups of options that no rule tells apart: same
// weight, same topology domains, members of the same classes' sets, and the
// same use of what is scarce.
func signatures(s *feasible.Space, w *topo.World, classes []class, scarce []int) []int {
	group := make([]int, len(s.Options))
	groups := 1
	split := func(value func(o int) int) {
		index := map[[2]int]int{}
		for o := range group {
			key := [2]int{group[o], value(o)}
			g, ok := index[key]
			if !ok {
				g = len(index)
				index[key] = g
			}
			group[o] = g
		}
		groups = len(index)
	}
	if s.Tiers > 1 {
		tier := make([]int, len(s.Options))
		for _, p := range s.Pools {
			for o := p.First; o < p.End; o++ {
				tier[o] = p.Tier
			}
		}
		split(func(o int) int { return tier[o] })
	}
	for _, k := range w.TopologyKeys() {
		split(func(o int) int { return int(s.OptionValue(k, o)) })
	}
	for i := range s.Lines {
		if s.Lines[i].Reason == model.ReasonReservation || slices.Contains(scarce, i) {
			split(func(o int) int {
				if slices.ContainsFunc(s.Options[o].Uses, func(u feasible.Use) bool { return u.Line == i }) {
					return 1
				}
				return 0
			})
		}
	}
	sets := w.Filters()
	seen := map[int]bool{}
	for i := range classes {
		for _, l := range classes[i].levels {
			if !seen[l.static] {
				seen[l.static] = true
				sets = append(sets, s.Interned(l.static))
			}
		}
	}
	for _, set := range sets {
		if groups >= len(s.Options) {
			break
		}
		if n := set.Count(); n == 0 || n == len(s.Options) {
			continue
		}
		split(func(o int) int {
			if set.Has(o) {
				return 1
			}
			return 0
		})
	}
	return group
}
