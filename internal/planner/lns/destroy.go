package lns

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/construct"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// kept is what a place of a plan keeps.
type kept struct {
	// pl is the place in the plan that was destroyed.
	pl *placement.Place
	// pods are those that stay there. The list is the kept place's own.
	pods []instance.PodCount
}

// keptOf lists all places of a plan that hold pods.
func keptOf(c *construct.Constructor) []kept {
	var out []kept
	for _, list := range [2][]*placement.Place{c.State.Nodes, c.State.NewNodes} {
		for _, pl := range list {
			if len(pl.Pods) > 0 {
				out = append(out, kept{pl, slices.Clone(pl.Pods)})
			}
		}
	}
	return out
}

// destroy draws what to keep of the current plan: all but some places, and at times
// without the pods of some class, or nothing at all.
func (s *search) destroy() []kept {
	places := keptOf(s.now)
	draw := s.rng.IntN(20)
	if draw == 0 {
		return nil
	}
	drop := func(i int) { places = slices.Delete(places, i, i+1) }
	more := s.rng.IntN(3)
	if at := s.suiting(places); len(at) > 0 && s.rng.IntN(2) == 0 {
		drop(at[s.rng.IntN(len(at))])
	} else {
		more++
	}
	for range min(more, len(places)) {
		drop(s.rng.IntN(len(places)))
	}
	if draw < 8 {
		class := s.now.Sequence()[s.rng.IntN(len(s.now.Sequence()))]
		for i := range places {
			places[i].pods = slices.DeleteFunc(places[i].pods, func(pc instance.PodCount) bool { return pc.Class == class })
		}
	}
	return places
}

// suiting draws a class with stranded pods and lists the places that would hold one of
// them if no other pod were there.
func (s *search) suiting(places []kept) []int {
	waiting := s.now.Stranded()
	if len(waiting) == 0 {
		return nil
	}
	class := waiting[s.rng.IntN(len(waiting))]
	var out []int
	for i, k := range places {
		if s.now.Suits(class, k.pl) {
			out = append(out, i)
		}
	}
	return out
}

// enter lets the kept pods enter a blank plan, in an order in which the rules of each are
// met. Those that find no such moment stay without a place. It takes the pods off the
// kept places.
func enter(c *construct.Constructor, places []kept) {
	at := make([]*placement.Place, len(places))
	for progress := true; progress; {
		progress = false
		for _, i := range c.Sequence() {
			for p := range places {
				for k := range places[p].pods {
					pc := &places[p].pods[k]
					for pc.Class == i && pc.Count > 0 {
						if at[p] == nil {
							at[p] = counterpart(c.State, places[p].pl)
						}
						n := put(c.State, pc, at[p])
						if n == 0 {
							if len(at[p].Pods) == 0 {
								at[p] = nil
							}
							break
						}
						pc.Count -= n
						c.State.Left[i] -= n
						progress = true
					}
				}
			}
		}
	}
}

// counterpart is the place of a state that stands for one of another state's. A new node
// is yet to be bought.
func counterpart(s *placement.State, pl *placement.Place) *placement.Place {
	if pl.Node >= 0 {
		return s.Nodes[slices.IndexFunc(s.Nodes, func(own *placement.Place) bool { return own.Node == pl.Node })]
	}
	own := s.NewNode(pl.Option)
	own.Open = pl.Open
	return own
}

// put puts as many of some pods on a place as may come now, buys it if it is new, and
// returns how many.
func put(s *placement.State, pc *instance.PodCount, pl *placement.Place) int {
	c := &s.Instance.Classes[pc.Class]
	n := min(pc.Count, s.Domains.Counts.Room(c.Levels[pc.Level].Rules, pl.Place, topology.Everything))
	if n > 0 {
		n = s.RoomOn(c, pc.Level, n, pl)
	}
	if n == 0 {
		return 0
	}
	if pl.Node < 0 && len(pl.Pods) == 0 {
		s.Buy(pl)
	}
	s.Put(c, pc.Level, n, pl)
	if pl.Node < 0 {
		pl.Options.And(c.Levels[pc.Level].Options)
	}
	return n
}
