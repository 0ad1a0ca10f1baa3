package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// design asks the planner where all pods of some nodes would go if these nodes
// were given up together: into the room of the others, and to machines bought for
// them. The planner knows the fleet as it is at the beginning of the search. What
// it says is only a proposal: whoever builds it asks about every step.
func (b *board) design(nodes []int32) *parcel {
	p := *b.fleet.Problem
	p.Policy.Budget, p.Policy.Elapsed = 0, nil
	p.Nodes = slices.Clone(p.Nodes)
	for n := range p.Nodes {
		if b.shelf.at[n] < 0 || b.grown(n) {
			p.Nodes[n].Used = p.Nodes[n].Allocatable
		}
	}
	left := make([]int, len(b.fleet.Movable))
	for _, n := range nodes {
		p.Nodes[n].State = model.NodeLeaving
		for _, g := range b.nodes[n].tenants {
			left[int(g.class)-b.first] += int(g.n)
		}
	}
	p.Classes = nil
	var classes []int32
	for i, n := range left {
		if n > 0 {
			c := b.fleet.Movable[i].PodClass
			c.Pods = c.Pods[:n]
			p.Classes, classes = append(p.Classes, c), append(classes, int32(b.first+i))
		}
	}
	return b.parcelOf(planner.Solve(&p), nodes, classes)
}

// grown reports whether pods have moved in since the fleet was stated.
func (b *board) grown(n int) bool {
	return !slices.Equal(b.room(int32(n)), b.project(b.space.NodeFree(n)))
}

// parcelOf puts a plan for the pods of some nodes into the board's words.
func (b *board) parcelOf(plan *model.Plan, nodes, classes []int32) *parcel {
	out := &parcel{nodes: nodes}
	for i := range plan.Placements {
		pl := &plan.Placements[i]
		for _, cp := range pl.Pods {
			c := classes[cp.Class]
			out.slots = append(out.slots, slot{int32(pl.Node), guest{c, int32(len(cp.Pods)), b.levelOn(int(c), pl.Node)}})
		}
	}
	wares := map[int]int32{}
	for w := range b.menu {
		wares[b.menu[w].option] = int32(w)
	}
	for i := range plan.NewNodes {
		node := &plan.NewNodes[i]
		option := b.optionOf(node.Pool, node.Best())
		w, ok := wares[option]
		if !ok {
			continue
		}
		m := machine{ware: w}
		for _, cp := range node.Pods {
			c := classes[cp.Class]
			if l := b.levelFor(c, option); l >= 0 {
				m.pods = append(m.pods, guest{c, int32(len(cp.Pods)), int8(l)})
			}
		}
		out.machines = append(out.machines, m)
	}
	return out
}

// optionOf finds an offering among the options, -1 when it is none.
func (s *site) optionOf(pool int, ref model.OfferingRef) int {
	for o := range s.space.Options {
		option := &s.space.Options[o]
		if option.Pool == pool && option.Type == ref.InstanceType && option.Offering == ref.Offering {
			return o
		}
	}
	return -1
}

// build buys a parcel's machines and lets its pods in where it says, as far as
// rules allow that; machines that nobody enters are not bought. It reports whether
// limits and quotas had room for all of them.
func (b *board) build(p *parcel) bool {
	start := b.mark()
	machines, all := slices.Clone(p.machines), true
	for {
		bins := make([]int32, 0, len(machines))
		machines = slices.DeleteFunc(machines, func(mc machine) bool {
			ware := &b.menu[mc.ware]
			if b.shop.noSpot && ware.spot {
				return true
			}
			if !b.ledger.Admits(ware.option) {
				all = false
				return true
			}
			bins = append(bins, b.buy(mc.ware))
			return false
		})
		b.enterAll(machines, bins, p.slots)
		at := -1
		before := len(machines)
		machines = slices.DeleteFunc(machines, func(machine) bool {
			at++
			return len(b.bins[bins[at]].guests) == 0 || !b.variedEnough(bins[at])
		})
		if len(machines) == before {
			return all
		}
		b.undo(start)
	}
}

// enterAll lets the guests of machines and slots in, turn by turn: rules of
// topology may let a pod in only after others have entered elsewhere.
func (b *board) enterAll(machines []machine, bins []int32, slots []slot) {
	all := slices.Clone(slots)
	for i := range machines {
		for _, g := range machines[i].pods {
			all = append(all, slot{bins[i], g})
		}
	}
	for again := true; again; {
		again = false
		for i := range all {
			if sl := &all[i]; sl.n > 0 && b.need[sl.class] > 0 {
				n := b.enter(sl.bin, sl.guest)
				sl.n -= n
				again = again || n > 0 && sl.n > 0
			}
		}
	}
}

// enter lets guests in as far as the bin takes them now, and returns how many.
func (b *board) enter(i int32, g guest) int32 {
	k := &b.kinds[g.class]
	n := min(g.n, b.need[g.class], b.fits(k, i, g.n))
	entered := int32(0)
	for n > 0 && b.admits(k, int(g.level), i) {
		now := n
		if !k.plain {
			now = int32(min(int(n), b.counts.Room(k.levels[g.level].Rules, b.place(i), topology.Everything)))
		}
		b.put(i, g.class, g.level, now)
		n -= now
		entered += now
	}
	return entered
}
