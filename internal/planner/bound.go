package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/binpack"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// fewNodes is up to how many nodes with room the bound's problem holds each on
// its own. More are melted into as many, which only lowers the bound.
const fewNodes = 48

// bound proves a floor under the cost of placing the pods that b placed. Its
// problem is the original one with rules left out, never with rules added: pods
// are not tied to the domains that b chose, topology is forgotten but for what
// keeps pods of one class from sharing a machine, limits but reservations are
// forgotten, and all room of nodes can be used.
func (b *builder) bound(policy *model.Policy) model.Money {
	if len(b.bins) == 0 {
		return 0
	}
	placed, spilled := b.placedCounts(), b.spilled()
	if a := b.ahead; a != nil && !spilled && &a.reduced[0] == &b.reduced[0] && slices.Equal(a.placed, placed) {
		<-a.done
		return a.floor
	}
	return b.prove(placed, spilled, b.reduced, policy)
}

// ahead is a bound that is proven while machines are still being chosen, as if
// all pods for whom there is a place at all will have one in the pools that are theirs
// first.
type ahead struct {
	placed  []int
	reduced feasible.Set
	// floor is known once done is closed.
	floor model.Money
	done  chan struct{}
}

// proveAhead starts to prove a bound beside the packing.
func (b *builder) proveAhead(policy *model.Policy) {
	if len(b.reduced) == 0 {
		return
	}
	a := &ahead{placed: b.placedCounts(), reduced: b.reduced, done: make(chan struct{})}
	for _, i := range b.stranded() { // those may have their turn after the packer
		a.placed[i] = len(b.classes[i].Spec.Pods)
	}
	b.ahead = a
	go func() {
		defer close(a.done)
		a.floor = b.prove(a.placed, false, a.reduced, policy)
	}()
}

// await returns when nothing is being proven any more.
func (b *builder) await() {
	if b.ahead != nil {
		<-b.ahead.done
	}
}

// prove is bound for so many pods of every class. It looks at nothing that
// changes while a plan grows.
func (b *builder) prove(placed []int, spilled bool, reduced feasible.Set, policy *model.Policy) model.Money {
	k := &packing{}
	dims := b.inst.UsedDims()
	options := feasible.NewSet(len(b.space.Options))
	allowed := make([]feasible.Set, len(b.classes))
	for i := range b.classes {
		if placed[i] > 0 {
			allowed[i] = b.hardOptions(i, spilled)
			options.Or(allowed[i])
		}
	}
	options.And(reduced)
	var crowds []crowd
	rooms, melted := b.rooms(k, dims, placed)
	if !melted {
		crowds = b.trueCrowds(placed)
	}
	k.number(len(b.space.Options), len(crowds))
	k.problem.Bins = make([]binpack.Bin, 0, options.Count()+len(rooms))
	k.problem.Classes = make([]binpack.Class, 0, len(b.classes))
	for o := range options.All {
		k.bin[o] = int32(len(k.problem.Bins))
		option := &b.space.Options[o]
		k.problem.Bins = append(k.problem.Bins, binpack.Bin{Capacity: k.project(option.Net, dims), Cost: int64(option.Price), Max: -1})
	}
	bought := len(k.problem.Bins)
	for _, r := range rooms {
		k.problem.Bins = append(k.problem.Bins, binpack.Bin{Capacity: r.free, Max: r.count, Fixed: r.count == 1})
	}
	for i := range b.classes {
		if placed[i] == 0 {
			continue
		}
		set := k.binsFor(allowed[i])
		if len(rooms) > 0 {
			set = slices.Clone(set)
		}
		for r := range rooms {
			if b.inst.LastLevel(i).Nodes.Intersects(rooms[r].nodes) {
				set.Set(bought + r)
			}
		}
		class := binpack.Class{Size: k.project(b.classes[i].Own, dims), Count: placed[i], Bins: set}
		if !melted {
			class.PerBin = b.soloCap(i)
		}
		k.problem.Classes = append(k.problem.Classes, class)
	}
	k.problem.Dims = len(dims)
	k.addCrowds(crowds)
	k.options = slices.Collect(options.All)
	reservation := func(line int) bool { return b.space.Lines[line].Reason == model.ReasonReservation }
	k.addLines(b.space, b.space.NewLedger(), reservation)
	k.problem.Seed = policy.Seed
	k.problem.Elapsed, k.problem.Budget = policy.Elapsed, policy.Budget
	return model.Money(binpack.Bound(&k.problem))
}

// placedCounts is how many pods of each class have a place.
func (b *builder) placedCounts() []int {
	placed := make([]int, len(b.classes))
	for i := range b.classes {
		if b.classes[i].Invalid == "" {
			placed[i] = len(b.classes[i].Spec.Pods) - b.left[i]
		}
	}
	return placed
}

// hardOptions are the options that a class may use with all preferences given
// up: those of the heaviest pools that can take it, or all of them when
// something ran out and pods had to spill over.
func (b *builder) hardOptions(class int, spilled bool) feasible.Set {
	set := b.inst.LastLevel(class).Options
	if spilled || b.space.Tiers == 1 {
		return set
	}
	for tier := range b.space.Tiers {
		own := set.Clone()
		own.And(b.space.Tier(tier))
		if own.Any() {
			return own
		}
	}
	return set
}

// spilled reports whether a machine is of a lighter pool than the heaviest that
// could take one of its pods.
func (b *builder) spilled() bool {
	if b.space.Tiers == 1 {
		return false
	}
	for _, pl := range b.bins {
		for _, pc := range pl.Pods {
			if !b.hardOptions(pc.Class, false).Has(pl.Option) {
				return true
			}
		}
	}
	return false
}

// room is the free space of a node, or of several alike.
type room struct {
	free  []int64
	nodes feasible.Set
	// count is how many nodes there are with at most this much room.
	count int
}

// rooms lists what nodes had free before anything was placed.
func (b *builder) rooms(k *packing, dims []int, placed []int) (rooms []room, melted bool) {
	useful, isPlace := feasible.NewSet(len(b.space.Problem.Nodes)), feasible.NewSet(len(b.space.Problem.Nodes))
	free := make([][]int64, len(b.space.Problem.Nodes))
	for _, pl := range b.nodes {
		isPlace.Add(pl.Node)
		free[pl.Node] = b.space.NodeFree(pl.Node)
	}
	for i := range b.classes {
		if placed[i] == 0 {
			continue
		}
		for n := range b.inst.LastLevel(i).Nodes.All {
			if !useful.Has(n) && isPlace.Has(n) && count(b.classes[i].Own, nil, free[n]) > 0 {
				useful.Add(n)
			}
		}
	}
	for n := range useful.All {
		r := room{free: k.project(free[n], dims), count: 1, nodes: feasible.NewSet(len(b.space.Problem.Nodes))}
		r.nodes.Add(n)
		rooms = append(rooms, r)
	}
	if len(rooms) <= fewNodes {
		return rooms, false
	}
	return melt(rooms), true
}

// melt joins rooms of similar size, at most fewNodes of them, each of
// which there are so many, each as large as the largest in every dimension.
func melt(rooms []room) []room {
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

// soloCap is how many pods of the class its own rules allow on one machine
// whatever else is there, or 0.
func (b *builder) soloCap(class int) int {
	limit := 0
	tighten := func(n int) {
		if limit == 0 || n < limit {
			limit = n
		}
	}
	if len(b.classes[class].Spec.HostPorts) > 0 {
		tighten(1)
	}
	rules := b.inst.HardRules(class)
	for i := range rules.Spread {
		if s := &rules.Spread[i]; s.Key == topology.Host && s.Self == 1 {
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

// trueCrowds are the groups of classes of which a machine holds so many pods in
// all by the rules themselves: those that refuse each other, and those that
// spread over hosts and count each other. Members number the placed classes.
func (b *builder) trueCrowds(placed []int) []crowd {
	index := map[int]int{} // counter -> crowd
	var out []crowd
	member := -1
	for i := range b.classes {
		if placed[i] == 0 {
			continue
		}
		member++
		join := func(counter, capacity int) {
			at, ok := index[counter]
			if !ok {
				at = len(out)
				index[counter] = at
				out = append(out, crowd{})
			}
			out[at].members = append(out[at].members, member)
			out[at].capacity = max(out[at].capacity, capacity)
		}
		rules := b.inst.HardRules(i)
		for j := range rules.Spread {
			if s := &rules.Spread[j]; s.Key == topology.Host && s.Self == 1 {
				join(s.Counter, int(s.MaxSkew))
			}
		}
		for _, a := range rules.AntiAffinity {
			if a.Key == topology.Host && a.Self {
				join(a.Counter, 1)
			}
		}
	}
	out = slices.DeleteFunc(out, func(c crowd) bool { return len(c.members) < 2 })
	slices.SortStableFunc(out, func(a, b crowd) int { return len(b.members) - len(a.members) })
	return out[:min(len(out), maxCrowds)]
}
