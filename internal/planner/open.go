package planner

import (
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// open buys the machine on which a pod of the class costs least, counting how
// many of the wanted ones it would hold, and fills it.
func (b *builder) open(c *instance.Class, l int, s *slot, want int) int {
	rules, options := c.Levels[l].Rules, s.option
	if s.open {
		options = options.Clone()
		b.counts.KeepAdmitting(rules, -1, options)
	}
	fresh := &Place{Place: topology.Place{ID: len(b.space.Problem.Nodes) + len(b.bins), Node: -1}}
	want = min(want, b.counts.Room(rules, fresh.Place, topology.Hosts))
	if want == 0 {
		return 0
	}
	if b.variant.single {
		want = 1
	}
	best, bestCount := b.choose(c, fresh, options, want, nil)
	if c.Colocated {
		// Others can only go where these pods are: the first machine keeps room
		// for them, if there is one that large, or else for some of them.
		o, n := -1, 0
		if joining, room := b.joining(c, options); room != nil && b.share == 0 {
			o, n = b.choose(c, fresh, joining, want, room)
		}
		if o < 0 {
			o, n = b.chooseWith(b.guestOf(c), c, fresh, options, want)
		}
		if o >= 0 {
			best, bestCount = o, n
		}
	}
	if best < 0 {
		return 0
	}
	fresh = b.empty(best)
	fresh.Open = s.open
	fresh.Options.And(options)
	b.bins = append(b.bins, fresh)
	b.ledger.Take(best, 1)
	b.put(c, l, bestCount, fresh)
	return bestCount
}

// guestOf is the class for whose pods the first machine of a class keeps room, as far
// as that goes, when there is none that holds all who wait for it.
func (b *builder) guestOf(c *instance.Class) *instance.Class {
	if b.guest == nil && b.waitsFor(c, c) {
		return c
	}
	return b.guest
}

// chooseWith chooses a machine with room for as many pods of a guest as one holds, by
// halves.
func (b *builder) chooseWith(guest, c *instance.Class, fresh *Place, options feasible.Set, want int) (best, bestCount int) {
	if guest == nil {
		return -1, 0
	}
	common := options.Clone()
	common.And(guest.Levels[len(guest.Levels)-1].Options)
	room := make([]int64, b.space.Dims)
	for n := max(1, int64(b.left[guest.Index])>>b.share); n > 0; n /= 2 {
		for d, v := range guest.Own {
			room[d] = min(feasible.Unlimited, v*n)
		}
		if best, bestCount = b.choose(c, fresh, common, want, room); best >= 0 {
			return best, bestCount
		}
	}
	return -1, 0
}

// choose finds the option on which a pod of the class costs least, counting how
// many of the wanted ones it holds next to the room to be kept.
func (b *builder) choose(c *instance.Class, fresh *Place, options feasible.Set, want int, keep []int64) (best, bestCount int) {
	best = -1
	bestScore := 0.0
	run, fits := -1, 0
	choosy := len(c.Spec.NodeAlternatives) > 1 || len(c.Spec.VolumeAlternatives) > 1
	for o := range options.All {
		option := &b.space.Options[o]
		if option.Run != run || choosy && len(b.inst.MinValues.Of(option.Pool)) > 0 {
			run, fits = option.Run, b.holds(c, fresh, o, options, want)
			if keep != nil {
				fits = min(fits, count(c.Own, keep, option.Net))
			}
		}
		if fits == 0 || !b.ledger.Admits(o) {
			continue
		}
		score := float64(option.Price) / float64(fits)
		if b.wanted != nil {
			score = b.thrift(o)
		}
		if best < 0 || score < bestScore {
			best, bestCount, bestScore = o, fits, score
		}
	}
	return best, bestCount
}

// holds is how many of the wanted pods a new machine of the option holds.
func (b *builder) holds(c *instance.Class, fresh *Place, option int, options feasible.Set, want int) int {
	o := &b.space.Options[option]
	n := min(want, b.capacity(c, fresh, o.Net))
	if n == 0 || len(b.inst.MinValues.Of(o.Pool)) == 0 {
		return n
	}
	pool := b.space.PoolOf(option)
	set := feasible.NewSet(len(b.space.Options))
	set.AddRange(pool.First, pool.End)
	set.And(options)
	set = b.inst.MinValues.Fixed(set, []instance.PodCount{{Class: c.Index}}, option)
	empty := &Place{Place: topology.Place{Node: -1, Option: option}, Free: o.Net}
	return sort.Search(n, func(n int) bool { return !b.inst.MinValues.Met(o.Pool, set, b.load(c, n+1, empty)) })
}
