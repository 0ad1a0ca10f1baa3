package construct

import (
	"slices"
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// enlarge exchanges a new node for the cheapest option that holds its pods and up to
// want pods of a class more, and returns how many. The caller puts them there. It is for
// pods that must join others and cannot go to a node of their own.
func enlarge(s *placement.State, c *instance.Class, l, want int, pl *placement.Place) int {
	if len(c.Spec.HostPorts) > 0 {
		if feasible.PortsClash(c.Spec.HostPorts, pl.Ports) {
			return 0
		}
		want = 1
	}
	in := s.Instance
	set := s.SharedOptions(c, l, pl)
	pods := append(slices.Clip(pl.Pods), instance.PodCount{Class: c.Index, Level: l})
	holding := func(n int) int {
		load := s.UsedWith(c, n, pl)
		best := -1
		pods[len(pods)-1].Count = n
		for o := range set.All {
			option := &in.Space.Options[o]
			if best >= 0 && option.Price >= in.Space.Options[best].Price || !feasible.Fits(load, in.Space.Net(o)) {
				continue
			}
			// Without minValues there is nothing to meet, and no need to list what stays.
			pool := int(option.Pool)
			if s.Affords(pl.Option, o) && (len(in.MinValues.Of(pool)) == 0 || in.MinValues.Met(pool, in.MinValues.Fixed(set, pods, o), load)) {
				best = o
			}
		}
		return best
	}
	n := sort.Search(want, func(n int) bool { return holding(n+1) < 0 })
	if n == 0 {
		return 0
	}
	s.Exchange(pl, holding(n))
	return n
}
