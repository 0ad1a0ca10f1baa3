package construct

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// mostSeedPlaces bounds how many places are tried for a seed pod at each level.
const mostSeedPlaces = 32

// Admit places all pods that have no place, in the given order of classes. Pods of
// those classes for which together returns true come with a seed: a pod that their
// affinity selects, on the place that leaves room for the most of them.
func (c *Constructor) Admit(order []int, together func(class int) bool) {
	for _, i := range order {
		class := &c.State.Instance.Classes[i]
		if c.State.Left[i] == 0 {
			continue
		}
		if !together(i) || !hasAffinity(c.State.Instance, i) {
			c.Place(class)
			continue
		}
		if !c.founds(i) {
			c.Place(class)
		}
		for c.State.Left[i] > 0 && c.placeSeed(i) {
			c.Place(class)
		}
		if c.State.Left[i] > 0 {
			c.Place(class) // the first of a group by itself, before others come
		}
	}
	c.PlaceAll()
}

// founds reports whether the next pod of a class decides where the pods that its
// affinity selects have to be, which are all of its own kind.
func (c *Constructor) founds(class int) bool {
	return !slices.ContainsFunc(c.State.Instance.HardRules(class).Affinity, func(a topology.Affinity) bool {
		return !a.Self || c.State.Domains.Counts.Total(a.Counter) > 0
	})
}

// placeSeed places one pod which those of a class have to be near where the most of
// them can follow, lets them, and reports whether there is such a place. Of places
// that admit as many it takes the cheapest.
func (c *Constructor) placeSeed(class int) bool {
	in := c.State.Instance
	trial := c.params
	trial.Perturb = nil
	seeding := trial
	seeding.Reserved = &in.Classes[class]
	var best *placement.State
	for _, i := range c.sequence {
		if c.State.Left[i] == 0 || !in.Attracts(i, class) || i == class && !c.founds(class) {
			continue
		}
		for l := range in.Classes[i].Levels {
			for at := range mostSeedPlaces {
				if c.params.Late != nil && c.params.Late() {
					break
				}
				f := c.Fork(trial)
				tried, placed := f.with(seeding).placeAt(&in.Classes[i], l, at)
				if !tried {
					break
				}
				if !placed {
					continue
				}
				f.placeOnce(&in.Classes[class])
				if s := f.State; s.Left[class] < c.State.Left[class] && (best == nil || followsBetter(s, best, class)) {
					best = s
				}
			}
		}
	}
	if best != nil {
		c.State = best
	}
	return best != nil
}

// followsBetter reports whether more pods of a class have a place in s than in o, or as
// many at a lower price.
func followsBetter(s, o *placement.State, class int) bool {
	return s.Left[class] < o.Left[class] || s.Left[class] == o.Left[class] && s.Cost() < o.Cost()
}

// placeAt puts one pod of a class on the n-th of the places on which it may be tried:
// existing nodes, new nodes, and one new node in each domain of the class or of the
// reserved one, for which it keeps room. It reports whether there are so many, and
// whether the pod is there.
func (c *Constructor) placeAt(class *instance.Class, l, n int) (tried, placed bool) {
	s, reserved := c.State, c.params.Reserved
	keys := slices.Clone(s.Domains.Keys(class.Index, l))
	for _, k := range s.Domains.Keys(reserved.Index, len(reserved.Levels)-1) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	find := c.slots()
	for tier := nodesOnly; tier < s.Instance.Space.Tiers; tier++ {
		slots := find.held(class, l, keys, tier)
		if tier > nodesOnly {
			slots = append(slots, find.forOptions(class, l, tier, keys)...)
		}
		for i := range slots {
			sl := &slots[i]
			size := max(1, len(sl.queue))
			if n >= size {
				n -= size
				continue
			}
			if sl.kind != onOptions {
				sl.queue = sl.queue[n : n+1]
			}
			if s.Domains.Counts.Room(class.Levels[l].Rules, sl.rep, topology.Labels) == 0 || c.takeFrom(class, l, sl, 1) == 0 {
				return true, false
			}
			s.Left[class.Index]--
			return true, true
		}
	}
	return false, false
}

// waitingRoom adds up the pods that can only go where pods of a class are, by
// dimension, with the classes that they are of. The room is nil when no pod waits.
func waitingRoom(s *placement.State, c *instance.Class) (room []int64, others []int) {
	if !c.Colocated {
		return nil, nil
	}
	for _, i := range s.Instance.Followers(c.Index) {
		other := &s.Instance.Classes[i]
		if s.Left[i] == 0 || !waitsFor(s, other, c) {
			continue
		}
		if room == nil {
			room = make([]int64, s.Instance.Space.Dims.Count)
		}
		pods := int64(s.Left[i])
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

// waitsFor reports whether a class has affinity on hosts to another, and no place with
// pods that the affinity selects has room for it.
func waitsFor(s *placement.State, waiting, target *instance.Class) bool {
	for _, a := range waiting.Levels[0].Rules.Affinity {
		if a.Key != topology.Host || !slices.Contains(s.Instance.Topology.Adds(target.Index), int32(a.Counter)) {
			continue
		}
		if s.Domains.Counts.Total(a.Counter) == 0 || waiting != target && !hasRoomNear(s, waiting, a.Counter) {
			return true
		}
	}
	return false
}

// hasRoomNear reports whether there is room for a pod of a class where a counter counts
// pods.
func hasRoomNear(s *placement.State, c *instance.Class, counter int) bool {
	has := func(pl *placement.Place) bool {
		return s.Domains.Counts.Sum([]int{counter}, pl.Place) > 0 && s.Capacity(c, pl, pl.Free) > 0
	}
	return slices.ContainsFunc(s.Nodes, func(pl *placement.Place) bool { return c.Levels[0].Nodes.Has(pl.Node) && has(pl) }) ||
		slices.ContainsFunc(s.NewNodes, func(pl *placement.Place) bool { return c.Levels[0].Options.Has(pl.Option) && has(pl) })
}
