package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// mostPlaces bounds how many places are tried for those whom others have to be near.
const mostPlaces = 32

// near reports whether pods of a class have to be near others.
func (b *builder) near(class int) bool {
	return len(b.classes[class].Levels) > 0 && len(b.inst.HardRules(class).Affinity) > 0
}

// admit places all who have no place, in the given order of classes. Those of some
// classes who have to be near others come together with these.
func (b *builder) admit(order []int, together func(class int) bool) {
	for _, i := range order {
		if b.left[i] == 0 {
			continue
		}
		if !together(i) || !b.near(i) {
			b.runOut(&b.classes[i])
			continue
		}
		if !b.founding(i) {
			b.runOut(&b.classes[i])
		}
		for b.left[i] > 0 && b.company(i) {
			b.runOut(&b.classes[i])
		}
		if b.left[i] > 0 {
			b.runOut(&b.classes[i]) // the first of a group alone, before others come
		}
	}
	b.runAll()
}

// founding reports whether the next pod of a class decides where all that are like it
// have to be.
func (b *builder) founding(class int) bool {
	return !slices.ContainsFunc(b.inst.HardRules(class).Affinity, func(a topology.Affinity) bool {
		return !a.Self || b.counts.Total(a.Counter) > 0
	})
}

// company places one pod which those of a class have to be near, where the most of them
// can follow, lets them, and reports whether there is such a place.
func (b *builder) company(class int) bool {
	var best *builder
	for _, i := range b.sequence {
		if b.left[i] == 0 || !b.attracts(i, class) || i == class && !b.founding(class) {
			continue
		}
		c := &b.classes[i]
		for l := range c.Levels {
			for at := range mostPlaces {
				if b.late != nil && b.late() {
					break
				}
				f := b.fork()
				f.whim = nil
				tried, placed := f.placeAt(c, l, at, class)
				if !tried {
					break
				}
				if !placed {
					continue
				}
				f.run(&f.classes[class])
				if f.left[class] < b.left[class] && (best == nil || f.left[class] < best.left[class] || f.left[class] == best.left[class] && f.cost() < best.cost()) {
					best = f
				}
			}
		}
	}
	if best != nil {
		b.become(best)
	}
	return best != nil
}

// attracts reports whether pods of a class have to be near those of another.
func (b *builder) attracts(other, class int) bool {
	return slices.ContainsFunc(b.inst.HardRules(class).Affinity, func(a topology.Affinity) bool {
		return slices.Contains(b.inst.Topology.Adds(other), a.Counter)
	})
}

// placeAt puts one pod of a class on the n-th of the places that it may be tried on:
// nodes, open machines, and a new one with room for a guest in each domain of either.
// It reports whether there are so many, and whether the pod is there.
func (b *builder) placeAt(c *instance.Class, l, n, guest int) (tried, placed bool) {
	b.guest = &b.classes[guest]
	defer func() { b.guest = nil }()
	keys := slices.Clone(b.keysOf(c.Index, l))
	for _, k := range b.keysOf(guest, len(b.guest.Levels)-1) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for tier := nodesOnly; tier < b.space.Tiers; tier++ {
		slots := b.heldSlots(c, l, keys, tier)
		if tier > nodesOnly {
			slots = append(slots, b.newSlots(c, l, tier, keys)...)
		}
		for i := range slots {
			s := &slots[i]
			size := max(1, len(s.queue))
			if n >= size {
				n -= size
				continue
			}
			if s.kind != onNew {
				s.queue = s.queue[n : n+1]
			}
			if b.counts.Room(c.Levels[l].Rules, s.rep, topology.Labels) == 0 || b.takeFrom(c, l, s, 1) == 0 {
				return true, false
			}
			b.left[c.Index]--
			return true, true
		}
	}
	return false, false
}

// become makes b what its fork has become.
func (b *builder) become(f *builder) {
	b.counts, b.ledger, b.left, b.nodes, b.bins, b.steps = f.counts, f.ledger, f.left, f.nodes, f.bins, f.steps
}
