package nodechoice

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// fewNodes is up to how many nodes with room the bound's problem holds each by itself.
// More are merged into as many, which only lowers the bound.
const fewNodes = 48

// Target says of which plans a bound speaks. It never changes.
type Target struct {
	// Placed is how many pods of each class have a place.
	Placed []int
	// Spilled says that pods may use pools of any weight. If not, each class uses the
	// heaviest pools that can take it.
	Spilled bool
	// Worth are the options worth buying.
	Worth bitset.Set
	// Nodes are the existing nodes that may take pods.
	Nodes bitset.Set
}

// TargetOf is the target of plans that place the same pods as a state.
func TargetOf(s *placement.State, worth bitset.Set) Target {
	t := TargetFor(s, s.PlacedCounts(), worth)
	t.Spilled = spilled(s)
	return t
}

// TargetFor is the target of plans on the nodes of a state that place so many pods of
// each class, in the pools that are theirs first.
func TargetFor(s *placement.State, placed []int, worth bitset.Set) Target {
	nodes := bitset.New(len(s.Instance.Space.Problem.Nodes))
	for _, pl := range s.Nodes {
		nodes.Add(pl.Node)
	}
	return Target{Placed: placed, Worth: worth, Nodes: nodes}
}

// same reports whether both targets have the same bound.
func (t *Target) same(o *Target) bool {
	return t.Spilled == o.Spilled && &t.Worth[0] == &o.Worth[0] && slices.Equal(t.Placed, o.Placed) && slices.Equal(t.Nodes, o.Nodes)
}

// Bound proves how much every plan costs at least that places the target's pods. Its
// problem is the original one with rules left out, never with rules added; see the
// package's documentation. It depends on its arguments alone and is safe for any
// goroutine.
func Bound(in *instance.Instance, t Target, policy *model.Policy, clock meter.Clock) model.Money {
	r := &relaxation{in: in, target: t, dims: in.UsedDims()}
	options := bitset.New(len(in.Space.Options))
	allowed := make([]bitset.Set, len(in.Classes))
	for i := range in.Classes {
		if t.Placed[i] > 0 {
			allowed[i] = hardOptions(in, i, t.Spilled)
			options.Or(allowed[i])
		}
	}
	options.And(t.Worth)
	var groups []group
	rooms, merged := r.rooms()
	if !merged {
		groups = r.groups()
	}
	k := newPacking(len(in.Space.Options), len(groups))
	k.addOptions(in.Space, options, r.dims, len(rooms))
	bought, all := len(k.problem.Bins), r.all()
	for _, rm := range rooms {
		k.problem.Bins = append(k.problem.Bins, binpack.Bin{Capacity: k.project(rm.free, all), Max: rm.count, Fixed: rm.count == 1})
	}
	k.problem.Classes = make([]binpack.Class, 0, len(in.Classes))
	for i := range in.Classes {
		if t.Placed[i] == 0 {
			continue
		}
		set := k.binsFor(allowed[i])
		if len(rooms) > 0 {
			set = slices.Clone(set)
		}
		for at := range rooms {
			if in.LastLevel(i).Nodes.Intersects(rooms[at].nodes) {
				set.Add(bought + at)
			}
		}
		class := binpack.Class{Size: k.project(in.Classes[i].Own, r.dims), Count: t.Placed[i], Bins: set}
		if !merged {
			class.PerBin = r.capOf(i)
		}
		k.problem.Classes = append(k.problem.Classes, class)
	}
	k.problem.Dims = len(r.dims)
	k.addGroups(groups, bought)
	k.addLines(in.Space, in.Space.NewLedger(), func(line int) bool { return in.Space.Supply.Lines[line].Reason == model.ReasonReservation })
	k.problem.Seed = policy.Seed
	k.problem.Clock, k.problem.Budget = clock, policy.Budget
	least := int64(0)
	if !merged {
		if d := r.domains(k, rooms, allowed); d != nil {
			over, solved := binpack.BoundOver(&k.problem, d)
			switch {
			case solved && len(k.problem.Shared) == 0:
				return model.Money(over)
			case solved:
				least = over
			}
		}
	}
	return model.Money(max(least, binpack.Bound(&k.problem)))
}

// hardOptions are the options that a class may use with all preferences given up: those
// of the heaviest pools that can take it, or all of them when something ran out and
// pods had to spill over.
func hardOptions(in *instance.Instance, class int, spilled bool) bitset.Set {
	set := in.LastLevel(class).Options
	if spilled || in.Space.Tiers == 1 {
		return set
	}
	for tier := range in.Space.Tiers {
		own := set.Clone()
		own.And(in.Space.Tier(tier))
		if own.Any() {
			return own
		}
	}
	return set
}

// spilled reports whether a new node is of a lighter pool than the heaviest that could
// take one of its pods.
func spilled(s *placement.State) bool {
	if s.Instance.Space.Tiers == 1 {
		return false
	}
	for _, pl := range s.NewNodes {
		for _, pc := range pl.Pods {
			if !hardOptions(s.Instance, pc.Class, false).Has(pl.Option) {
				return true
			}
		}
	}
	return false
}

// relaxation is the bound's problem.
type relaxation struct {
	in     *instance.Instance
	target Target
	// dims are the dimensions in which some pod takes something.
	dims []int
	// adders are the placed classes that each counter counts. It is nil until
	// [relaxation.onNodes] needs it.
	adders map[int][]int
}

// all numbers the dimensions of vectors that are laid out along dims already.
func (r *relaxation) all() []int {
	all := make([]int, len(r.dims))
	for i := range all {
		all[i] = i
	}
	return all
}

// room is the free space of an existing node, or of several alike.
type room struct {
	// free is along the relaxation's dimensions.
	free []int64
	// nodes are those that it stands for, and count is how many.
	nodes bitset.Set
	count int
}

// rooms lists what existing nodes had free before anything was placed, and reports
// whether nodes had to be merged.
func (r *relaxation) rooms() (rooms []room, merged bool) {
	in := r.in
	n := len(in.Space.Problem.Nodes)
	useful, free := bitset.New(n), make([][]int64, n)
	for i := range r.target.Nodes.All {
		free[i] = in.Space.NodeFree(i)
	}
	for i := range in.Classes {
		if r.target.Placed[i] == 0 {
			continue
		}
		for n := range in.LastLevel(i).Nodes.All {
			if !useful.Has(n) && r.target.Nodes.Has(n) && feasible.Fits(in.Classes[i].Own, free[n]) {
				useful.Add(n)
			}
		}
	}
	for i := range useful.All {
		rm := room{free: make([]int64, len(r.dims)), count: 1, nodes: bitset.New(n)}
		for at, d := range r.dims {
			rm.free[at] = free[i][d]
		}
		rm.nodes.Add(i)
		rooms = append(rooms, rm)
	}
	if len(rooms) <= fewNodes {
		return rooms, false
	}
	return merge(rooms), true
}

// merge joins rooms of similar size into at most fewNodes groups. Each stands for as
// many rooms as it joins, all as large as the largest in every dimension.
func merge(rooms []room) []room {
	slices.SortStableFunc(rooms, func(x, y room) int { return slices.Compare(x.free, y.free) })
	each := (len(rooms) + fewNodes - 1) / fewNodes
	var out []room
	for group := range slices.Chunk(rooms, each) {
		all := room{free: make([]int64, len(group[0].free)), count: len(group), nodes: group[0].nodes.Clone()}
		for _, r := range group {
			all.nodes.Or(r.nodes)
			for d, v := range r.free {
				all.free[d] = max(all.free[d], v)
			}
		}
		out = append(out, all)
	}
	return out
}

// capOf is how many pods of the class its own rules allow on one node, new or not, whatever
// else is there, or 0 if any number.
func (r *relaxation) capOf(class int) int {
	limit := 0
	tighten := func(n int) {
		if limit == 0 || n < limit {
			limit = n
		}
	}
	if len(r.in.Classes[class].Spec.HostPorts) > 0 {
		tighten(1)
	}
	rules := r.in.HardRules(class)
	for i := range rules.Spread {
		if s := &rules.Spread[i]; s.Key == topology.Host && s.Self == 1 && r.onNodes(s) == int(s.MaxSkew) {
			tighten(int(s.MaxSkew))
		}
	}
	for _, a := range rules.AntiAffinity {
		if a.Key == topology.Host && a.Self {
			tighten(1)
		}
	}
	return limit
}

// onNodes is how many pods that a spread over hosts counts an existing node may hold: more
// than a new one where all nodes that count may take some.
func (r *relaxation) onNodes(s *topology.Spread) int {
	if r.adders == nil {
		r.adders = map[int][]int{}
		for i := range r.in.Classes {
			for _, c := range r.in.Topology.Adds(i) {
				if r.target.Placed[i] > 0 {
					r.adders[int(c)] = append(r.adders[int(c)], i)
				}
			}
		}
	}
	most, adders := 0, r.adders[s.Counter]
	for _, i := range adders {
		most += r.target.Placed[i]
	}
	rises := r.in.Topology.HighestMinimum(s, func(n int) bool {
		return r.target.Nodes.Has(n) && slices.ContainsFunc(adders, func(i int) bool {
			return r.in.LastLevel(i).Nodes.Has(n) && feasible.Fits(r.in.Classes[i].Own, r.in.Space.NodeFree(n))
		})
	})
	return int(s.MaxSkew) + min(rises, most)
}

// groups are the groups of classes of which a node holds so many pods in all by the
// rules themselves: those that refuse each other, those that spread over hosts and count
// each other, and single ones of which existing nodes hold more than new ones. Members
// number the placed classes.
func (r *relaxation) groups() []group {
	index := map[int]int{} // counter -> group
	var out []group
	member := -1
	for i := range r.in.Classes {
		if r.target.Placed[i] == 0 {
			continue
		}
		member++
		join := func(counter, capacity, onNodes int) {
			at, ok := index[counter]
			if !ok {
				at = len(out)
				index[counter] = at
				out = append(out, group{})
			}
			out[at].members = append(out[at].members, member)
			out[at].capacity, out[at].onNodes = max(out[at].capacity, capacity), max(out[at].onNodes, onNodes)
		}
		rules := r.in.HardRules(i)
		for j := range rules.Spread {
			if s := &rules.Spread[j]; s.Key == topology.Host && s.Self == 1 {
				join(s.Counter, int(s.MaxSkew), r.onNodes(s))
			}
		}
		for _, a := range rules.AntiAffinity {
			if a.Key == topology.Host && a.Self {
				join(a.Counter, 1, 1)
			}
		}
	}
	out = slices.DeleteFunc(out, func(g group) bool { return len(g.members) < 2 && g.onNodes == g.capacity })
	slices.SortStableFunc(out, func(a, b group) int { return len(b.members) - len(a.members) })
	return out[:min(len(out), maxGroups)]
}
