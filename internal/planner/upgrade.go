package planner

import (
	"slices"
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// upgrade exchanges a machine that is not bought yet for the cheapest one that
// holds its pods and up to want pods of a class more, and returns how many. It
// is for pods that must join others and cannot go to a machine of their own.
func (b *builder) upgrade(c *instance.Class, l, want int, pl *Place) int {
	if len(c.Spec.HostPorts) > 0 {
		if feasible.PortsClash(c.Spec.HostPorts, pl.Ports) {
			return 0
		}
		want = 1
	}
	now := &b.space.Options[pl.Option]
	set := b.sharedOptions(c, l, pl)
	holding := func(n int) int {
		extra := b.sharedNeed(c, pl)
		load := make([]int64, b.space.Dims)
		for d := range load {
			load[d] = now.Net[d] - pl.Free[d] + c.Own[d]*int64(n)
			if extra != nil {
				load[d] += extra[d]
			}
		}
		best := -1
		for o := range set.All {
			option := &b.space.Options[o]
			if best >= 0 && option.Price >= b.space.Options[best].Price || !feasible.Fits(load, option.Net) {
				continue
			}
			if b.affords(pl.Option, o) && b.inst.MinValues.Met(option.Pool, b.inst.MinValues.Fixed(set, append(slices.Clip(pl.Pods), instance.PodCount{Class: c.Index, Level: l, Count: n}), o), load) {
				best = o
			}
		}
		return best
	}
	n := sort.Search(want, func(n int) bool { return holding(n+1) < 0 })
	if n == 0 {
		return 0
	}
	b.exchange(pl, holding(n))
	return n
}

// affords reports whether the ledger admits one option in place of another.
func (b *builder) affords(old, option int) bool {
	b.ledger.Take(old, -1)
	ok := b.ledger.Admits(option)
	b.ledger.Take(old, 1)
	return ok
}

func (b *builder) exchange(pl *Place, option int) {
	old, now := &b.space.Options[pl.Option], &b.space.Options[option]
	for d := range pl.Free {
		pl.Free[d] += now.Net[d] - old.Net[d]
	}
	b.ledger.Take(pl.Option, -1)
	b.ledger.Take(option, 1)
	add := b.counts.Add
	if pl.Open { // its other domains are counted already
		add = b.counts.AddHost
	}
	for _, pc := range pl.Pods {
		add(pc.Class, pl.Place, -pc.Count)
	}
	defer func() { // spreads over hosts may see the one and not the other
		for _, pc := range pl.Pods {
			add(pc.Class, pl.Place, pc.Count)
		}
	}()
	pl.Ports = append(pl.Ports[:len(pl.Ports):len(pl.Ports)], b.space.DaemonSets[now.Daemons].Ports...)
	pl.Option = option
}

// joining adds up the waiting pods of classes that can only go where pods of
// this class are, and narrows the options to those that all of them may use.
// The room is nil when nobody waits or no option suits all.
func (b *builder) joining(c *instance.Class, options feasible.Set) (feasible.Set, []int64) {
	if !c.Colocated {
		return nil, nil
	}
	room, others := b.waiting(c)
	common := options.Clone()
	for _, i := range others {
		common.And(b.classes[i].Levels[0].Options)
	}
	if !common.Any() {
		return nil, nil
	}
	return common, room
}

// waiting adds up the pods that can only go where pods of a class are, with the
// classes that they are of. The room is nil when nobody waits.
func (b *builder) waiting(c *instance.Class) (room []int64, others []int) {
	if !c.Colocated {
		return nil, nil
	}
	for i := range b.classes {
		other := &b.classes[i]
		if b.left[i] == 0 || !b.waitsFor(other, c) {
			continue
		}
		if room == nil {
			room = make([]int64, b.space.Dims)
		}
		pods := int64(b.left[i])
		if i == c.Index {
			pods-- // all but the one that is placed now
		}
		for d, v := range other.Own {
			room[d] = min(feasible.Unlimited, room[d]+v*pods)
		}
		others = append(others, i)
	}
	return room, others
}

// waitsFor reports whether a class has per-machine affinity to another, and no place
// with pods that it selects has room for it.
func (b *builder) waitsFor(waiting, target *instance.Class) bool {
	for _, a := range waiting.Levels[0].Rules.Affinity {
		if a.Key != topology.Host || !slices.Contains(b.inst.Topology.Adds(target.Index), a.Counter) {
			continue
		}
		if b.counts.Total(a.Counter) == 0 || waiting != target && !b.accompanied(waiting, a.Counter) {
			return true
		}
	}
	return false
}

// accompanied reports whether there is room for a pod of a class where a counter
// counts pods.
func (b *builder) accompanied(c *instance.Class, counter int) bool {
	has := func(pl *Place) bool {
		return b.counts.Sum([]int{counter}, pl.Place) > 0 && b.capacity(c, pl, pl.Free) > 0
	}
	return slices.ContainsFunc(b.nodes, func(pl *Place) bool { return c.Levels[0].Nodes.Has(pl.Node) && has(pl) }) ||
		slices.ContainsFunc(b.bins, func(pl *Place) bool { return c.Levels[0].Options.Has(pl.Option) && has(pl) })
}
