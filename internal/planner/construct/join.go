package construct

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// joinAll places the pods of a class as Karpenter does: on existing nodes, on new nodes,
// which may grow, and on options, in this order. Pods that topology binds go one by
// one, each to the domain that has the fewest pods of its spread constraints.
func (c *Constructor) joinAll(class *instance.Class, l int) {
	d, rules := c.State.Domains, class.Levels[l].Rules
	counters := c.State.Instance.Topology.OtherSpreads(rules, d.Keys(class.Index, l))
	for i := range rules.Spread {
		if s := &rules.Spread[i]; s.Key != topology.Host {
			counters = append(counters, s.Counter)
		}
	}
	most := c.State.Left[class.Index]
	if c.params.OneByOne || len(counters) > 0 || rules.Bound() {
		most = 1
	}
	for c.State.Left[class.Index] > 0 {
		n := c.join(class, l, most, counters)
		if n == 0 {
			return
		}
		c.State.Left[class.Index] -= n
	}
}

// join places up to so many pods in one place, and returns how many.
func (c *Constructor) join(class *instance.Class, l, most int, counters []int) int {
	s, rules, keys := c.State, class.Levels[l].Rules, c.State.Domains.Keys(class.Index, l)
	find := c.slots()
	for tier := nodesOnly; tier < s.Instance.Space.Tiers; tier++ {
		slots := find.held(class, l, keys, tier)
		if tier > nodesOnly {
			slots = append(slots, find.forOptions(class, l, tier, keys)...)
		}
		emptiestFirst(s, slots, counters)
		for i := range slots {
			s.Steps++
			c.Spend(slotSteps)
			want := min(most, s.Left[class.Index], s.Domains.Counts.Room(rules, slots[i].rep, topology.Labels))
			if want == 0 {
				continue
			}
			if n := c.takeFrom(class, l, &slots[i], want); n > 0 {
				return n
			}
		}
	}
	return 0
}

// emptiestFirst sorts slots: new nodes with few pods before those with many, and domains
// with few pods of the counters before those with many. Existing nodes keep their order.
func emptiestFirst(s *placement.State, slots []slot, counters []int) {
	held := func(sl *slot) int {
		if sl.kind != onNewNodes {
			return 0
		}
		return sl.queue[0].pl.Count()
	}
	for i := range slots {
		if slots[i].kind == onNewNodes {
			slices.SortStableFunc(slots[i].queue, func(x, y candidate) int { return x.pl.Count() - y.pl.Count() })
		}
	}
	slices.SortStableFunc(slots, func(x, y slot) int {
		if x.kind != y.kind || x.kind == onNodes {
			return int(x.kind) - int(y.kind)
		}
		return cmp.Or(cmp.Compare(s.Domains.Counts.Sum(counters, x.rep), s.Domains.Counts.Sum(counters, y.rep)), held(&x)-held(&y))
	})
}
