package placement

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
)

// New nodes of pools with minValues may stay open between the domains of a key where
// being in one of them would leave too few values to choose from:
//
//	pool min=zone:2, web anti=zone:web: one node, in z1 or z2, with one web pod on it
//
// Its pods then count in each of its domains for the pods that they repel. For the
// pods that have to be near them they count in no domain but on the node itself (see
// [topology.Order.FixedKeys]).

// addOpen counts n pods of a class that came to an open node, and leaves it only the
// domains in which they may be.
func (s *State) addOpen(c *instance.Class, level, n int, pl *Place) {
	d := s.Domains
	pl.Options.And(c.Levels[level].Options)
	d.KeepAdmitting(c, level, pl, pl.Options)
	across, used := pl.Options.Clone(), s.Used(pl)
	for o := range across.All {
		if !feasible.Fits(used, s.Instance.Space.Net(o)) {
			across.Remove(o)
		}
	}
	d.KeepAgreeing(pl, d.Settled(pl), across)
	d.Counts.AddUndecided(c.Index, pl.Place, n, across)
}

// mayOpen reports whether a node may be open from now on, for a pod of a class at a
// level: no pod has counted on its domains so far.
func (s *State) mayOpen(c *instance.Class, level int, pl *Place) bool {
	loose := func(class, level int) bool {
		return len(s.Domains.Tied(class, level)) < len(s.Domains.Keys(class, level))
	}
	counted := func(pc instance.PodCount) bool { return loose(pc.Class, pc.Level) }
	return !pl.Open && loose(c.Index, level) && !slices.ContainsFunc(pl.Pods, counted)
}
