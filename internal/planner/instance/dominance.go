package instance

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// Undominated are the options worth buying: of options that no rule of the problem
// tells apart, those that no other one beats in both size and price. Of the limits
// (lines of the ledger) only reservations and the given scarce ones tell options
// apart, so a caller that exhausts another line must ask again and name it. The
// caller owns the set.
func (in *Instance) Undominated(scarce []int) bitset.Set {
	s := in.Space
	group := in.signatures(scarce)
	dims := in.UsedDims()
	most := s.Supply.Available.Count()
	if len(group) > 0 {
		most = min(most, len(s.Capacity.Runs)*(1+slices.Max(group)))
	}
	items, nets := make([]contender, 0, most), make([]int64, 0, most*len(dims))
	run, first := int32(-1), 0 // where the items of the current run begin
next:
	for o := range s.Supply.Available.All {
		option := &s.Options[o]
		if option.Run != run {
			run, first = option.Run, len(items)
		}
		// Options of one run are of one size: only the cheapest of a group counts.
		for i := first; i < len(items); i++ {
			if items[i].group == group[o] {
				if option.Price < items[i].price {
					items[i].option, items[i].price = o, option.Price
				}
				continue next
			}
		}
		item := contender{option: o, group: group[o], price: option.Price}
		net := s.Net(o)
		for _, d := range dims {
			item.total += float64(net[d])
			nets = append(nets, net[d])
		}
		item.net = nets[len(nets)-len(dims):]
		items = append(items, item)
	}
	slices.SortFunc(items, func(x, y contender) int {
		if x.group != y.group {
			return x.group - y.group
		}
		if x.price != y.price {
			return cmp.Compare(x.price, y.price)
		}
		return cmp.Or(cmp.Compare(y.total, x.total), x.option-y.option)
	})
	out := bitset.New(len(s.Options))
	var kept [][]int64 // sizes of the group's undominated options, ascending in the first dimension
	for i := range items {
		if i == 0 || items[i-1].group != items[i].group {
			kept = kept[:0]
		}
		if net := items[i].net; !covered(net, kept) {
			at := len(kept)
			for at > 0 && len(net) > 0 && kept[at-1][0] > net[0] {
				at--
			}
			kept = slices.Insert(kept, at, net)
			out.Add(items[i].option)
		}
	}
	return out
}

// contender is an option that others may dominate.
type contender struct {
	// option is in the space; group numbers what rules tell apart.
	option, group int
	price         model.Money
	// net is what pods may take of the option in the used dimensions, total its sum.
	total float64
	net   []int64
}

// covered reports whether one of the vectors in kept, which ascend in the first
// dimension, is at least as large as net in every dimension.
func covered(net []int64, kept [][]int64) bool {
	if len(net) == 0 {
		return false
	}
	for i := len(kept) - 1; i >= 0 && kept[i][0] >= net[0]; i-- {
		if feasible.Fits(net, kept[i]) {
			return true
		}
	}
	return false
}

// signatures numbers the groups of options that no rule tells apart: those with the
// same pool weight, the same minValues, the same topology domains and the same use of
// scarce lines, which are members of the same classes' sets. It returns the number
// by option.
func (in *Instance) signatures(scarce []int) []int {
	g := &grouping{of: make([]int, len(in.Space.Options)), groups: 1}
	in.splitByPool(g)
	in.splitByDomain(g)
	for i := range in.Space.Supply.Lines {
		if in.Space.Supply.Lines[i].Reason == model.ReasonReservation || slices.Contains(scarce, i) {
			g.splitBy(func(o int) bool {
				return slices.ContainsFunc(in.Space.Uses(o), func(u feasible.Use) bool { return u.Line == i })
			})
		}
	}
	in.splitBySets(g)
	return g.of
}

// splitByPool tells options of different weights apart, and those of pools with
// minValues.
func (in *Instance) splitByPool(g *grouping) {
	s := in.Space
	if in.MinValues.Any() {
		g.split(len(s.Problem.Pools)+1, func(o int) int {
			if pool := int(s.Options[o].Pool); len(in.MinValues.Of(pool)) > 0 {
				return pool + 1
			}
			return 0
		})
	}
	if s.Tiers > 1 {
		tier := make([]int, len(s.Options))
		for _, p := range s.Pools {
			for o := p.First; o < p.End; o++ {
				tier[o] = p.Tier
			}
		}
		g.split(s.Tiers, func(o int) int { return tier[o] })
	}
}

// splitByDomain tells options of different topology domains apart.
func (in *Instance) splitByDomain(g *grouping) {
	s := in.Space
	for _, k := range in.Topology.LabelKeys() {
		// Of many values that nodes have options may have few.
		numbers, next := make([]int, s.Labels.Values(k)+1), 0
		for o := range s.Options {
			if number := &numbers[s.Labels.OptionValue(k, o)+1]; *number == 0 {
				next++
				*number = next
			}
		}
		g.split(next, func(o int) int { return numbers[s.Labels.OptionValue(k, o)+1] - 1 })
	}
}

// splitBySets tells options apart that are not members of the same sets of classes and
// of topology.
func (in *Instance) splitBySets(g *grouping) {
	sets := in.Topology.Filters()
	seen := map[int]bool{}
	for i := range in.Classes {
		for _, l := range in.Classes[i].Levels {
			if !seen[l.Static] {
				seen[l.Static] = true
				sets = append(sets, in.Sets.Set(l.Static))
			}
		}
	}
	r := newRefinement(g)
	for _, set := range sets {
		r.splitBy(set)
	}
}

// refinement divides the groups of options further by sets, with work for the members of
// each set and not for all options: with a NodePool for each of many classes, sets are small
// parts of all options, and as many as the NodePools.
type refinement struct {
	*grouping
	// size is how many options a group has, and inside how many of them the set has that is
	// looked at, by group; apart is the group of those, where they are some but not all.
	size, inside, apart []int
}

func newRefinement(g *grouping) *refinement {
	r := &refinement{grouping: g, size: make([]int, g.groups), inside: make([]int, g.groups), apart: make([]int, g.groups)}
	for _, group := range g.of {
		r.size[group]++
	}
	return r
}

// splitBy divides the groups by whether the options are members of a set.
func (r *refinement) splitBy(set bitset.Set) {
	var touched []int
	for o := range set.All {
		group := r.of[o]
		if r.inside[group] == 0 {
			touched = append(touched, group)
		}
		r.inside[group]++
	}
	divided := false
	for _, group := range touched {
		r.apart[group] = group
		if n := r.inside[group]; n < r.size[group] {
			r.apart[group], divided = r.groups, true
			r.groups++
			r.size[group] -= n
			r.size, r.inside, r.apart = append(r.size, n), append(r.inside, 0), append(r.apart, 0)
		}
		r.inside[group] = 0
	}
	if !divided {
		return
	}
	for o := range set.All {
		r.of[o] = r.apart[r.of[o]]
	}
}

// grouping divides options into groups.
type grouping struct {
	// of is the group by option, from 0, and groups is how many there are.
	of     []int
	groups int
}

// split divides the groups by a value, of which there are so many.
func (g *grouping) split(values int, value func(o int) int) {
	numbers, next := make([]int32, g.groups*values), 0 // of the new groups, from 1
	for o := range g.of {
		number := &numbers[g.of[o]*values+value(o)]
		if *number == 0 {
			next++
			*number = int32(next)
		}
		g.of[o] = int(*number) - 1
	}
	g.groups = next
}

// splitBy divides the groups by whether the options meet a condition.
func (g *grouping) splitBy(has func(o int) bool) {
	g.split(2, func(o int) int {
		if has(o) {
			return 1
		}
		return 0
	})
}
