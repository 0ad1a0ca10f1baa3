package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// Machines of pools with minValues may stay open between the domains of a key where
// being in one of them would leave too few values to choose from:
//
//	pool min=zone:2, web anti=zone:web: one machine, in z1 or z2, with one web on it
//
// Its pods then count in each of its domains for those whom they repel, and for those
// who have to be near them in none but on the machine itself (see [topology.Order.FixedKeys]).

// tiedOf are those of a class's keys of which a machine has to have one value even if
// it is open: besides those that the topology ties those that the cloud does not offer.
func (b *builder) tiedOf(class, level int) []int {
	keys := b.keysOf(class, level)
	tied, known := b.tied[[2]int{class, level}]
	if !known {
		tied = b.order.FixedKeys(b.classes[class].Levels[level].Rules)
		for _, k := range keys {
			if !b.space.Offered(k) && !slices.Contains(tied, k) {
				tied = append(tied, k)
			}
		}
		slices.Sort(tied) // as partition has them
		if b.tied == nil {
			b.tied = map[[2]int][]int{}
		}
		b.tied[[2]int{class, level}] = tied
	}
	return tied
}

// openSlots are the options of a set as far as machines of them may be open for a
// class at a level, by the domains of the keys that have to be settled all the same.
func (b *builder) openSlots(c *instance.Class, l int, set feasible.Set) []slot {
	if !b.inst.MinValues.Any() || b.guest != nil || len(b.tiedOf(c.Index, l)) == len(b.keysOf(c.Index, l)) {
		return nil
	}
	keys, own := b.keysOf(c.Index, l), set.Clone()
	for o := range own.All {
		nowhere := func(k int) bool { return b.space.OptionValue(k, o) < 0 }
		if len(b.inst.MinValues.Of(b.space.Options[o].Pool)) == 0 || slices.ContainsFunc(keys, nowhere) {
			own.Remove(o)
		}
	}
	b.counts.KeepAdmitting(c.Levels[l].Rules, -1, own)
	cells, _ := b.partition(c, b.tiedOf(c.Index, l))
	var out []slot
	for _, cell := range cells {
		part := cell.Clone()
		part.And(own)
		if first := part.Next(0); first >= 0 {
			out = append(out, slot{kind: onNew, rep: topology.Place{ID: -1, Node: -1, Option: first}, option: part, open: true})
		}
	}
	return out
}

// keepAdmitting keeps of a set the options in whose domains a pod of a class may be on
// a machine, and that have a domain of each of its keys if the planned one has, or else
// none.
func (b *builder) keepAdmitting(c *instance.Class, l int, pl *Place, set feasible.Set) {
	b.counts.KeepAdmitting(c.Levels[l].Rules, pl.ID, set)
	for _, k := range b.keysOf(c.Index, l) {
		for o := range set.All {
			if (b.space.OptionValue(k, o) < 0) != (b.space.OptionValue(k, pl.Option) < 0) {
				set.Remove(o)
			}
		}
	}
}

// addOpen counts n pods of a class that came to an open machine, and leaves it only
// the domains in which they may be.
func (b *builder) addOpen(c *instance.Class, l, n int, pl *Place) {
	pl.Options.And(c.Levels[l].Options)
	b.keepAdmitting(c, l, pl, pl.Options)
	across, used := pl.Options.Clone(), b.used(pl)
	for o := range across.All {
		if !feasible.Fits(used, b.space.Options[o].Net) {
			across.Remove(o)
		}
	}
	b.keepAgreeing(pl, b.settled(pl), across)
	b.counts.AddUndecided(c.Index, pl.Place, n, across)
}

// opens reports whether a machine may be open from now on, for a pod of a class at a
// level: nobody has counted on its domains so far.
func (b *builder) opens(c *instance.Class, l int, pl *Place) bool {
	loose := func(class, level int) bool { return len(b.tiedOf(class, level)) < len(b.keysOf(class, level)) }
	return !pl.Open && loose(c.Index, l) && !slices.ContainsFunc(pl.Pods, func(pc instance.PodCount) bool { return loose(pc.Class, pc.Level) })
}
