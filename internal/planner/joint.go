package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// joinAll places the pods of a class as Karpenter does: on nodes, on machines that
// are open and may grow, and on new ones, in this order. Pods that topology binds
// go one by one, each to the domain that has the fewest pods of its spreads.
func (b *builder) joinAll(c *instance.Class, l int) {
	rules := c.Levels[l].Rules
	crowds := b.inst.Topology.OtherSpreads(rules, b.keysOf(c.Index, l))
	for i := range rules.Spread {
		if s := &rules.Spread[i]; s.Key != topology.Host {
			crowds = append(crowds, s.Counter)
		}
	}
	most := b.left[c.Index]
	if b.variant.single || len(crowds) > 0 || rules.Bound() {
		most = 1
	}
	for b.left[c.Index] > 0 {
		n := b.join(c, l, most, crowds)
		if n == 0 {
			return
		}
		b.left[c.Index] -= n
	}
}

// join places up to so many pods in one place, and returns how many.
func (b *builder) join(c *instance.Class, l, most int, crowds []int) int {
	rules, keys := c.Levels[l].Rules, b.keysOf(c.Index, l)
	for tier := nodesOnly; tier < b.space.Tiers; tier++ {
		slots := b.heldSlots(c, l, keys, tier)
		if tier > nodesOnly {
			slots = append(slots, b.newSlots(c, l, tier, keys)...)
		}
		b.emptiestFirst(slots, crowds)
		for i := range slots {
			b.steps++
			want := min(most, b.left[c.Index], b.counts.Room(rules, slots[i].rep, topology.Labels))
			if want == 0 {
				continue
			}
			if n := b.takeFrom(c, l, &slots[i], want); n > 0 {
				return n
			}
		}
	}
	return 0
}

// emptiestFirst puts open machines with few pods before those with many, and domains
// with few counted pods before those with many.
func (b *builder) emptiestFirst(slots []slot, crowds []int) {
	held := func(s *slot) int {
		if s.kind != onBins {
			return 0
		}
		return s.queue[0].pl.count()
	}
	for i := range slots {
		if slots[i].kind == onBins {
			slices.SortStableFunc(slots[i].queue, func(x, y candidate) int { return x.pl.count() - y.pl.count() })
		}
	}
	slices.SortStableFunc(slots, func(x, y slot) int {
		if x.kind != y.kind || x.kind == onNodes {
			return int(x.kind) - int(y.kind)
		}
		return cmp.Or(cmp.Compare(b.counts.Sum(crowds, x.rep), b.counts.Sum(crowds, y.rep)), held(&x)-held(&y))
	})
}

// count is the number of pods that were put on the place.
func (pl *Place) count() int {
	n := 0
	for _, pc := range pl.Pods {
		n += pc.Count
	}
	return n
}
