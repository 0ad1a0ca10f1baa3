package construct

import (
	"slices"
	"sort"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// enlarger lets new nodes grow.
type enlarger struct {
	state *placement.State
	// work counts what it does; it may be nil.
	work *meter.Work
}

// enlarge exchanges a new node for the cheapest option that holds its pods and up to
// want pods of a class more, and returns how many. The caller puts them there. It is for
// pods that must join others and cannot go to a node of their own.
func (e enlarger) enlarge(c *instance.Class, l, want int, pl *placement.Place) int {
	if len(c.Spec.HostPorts) > 0 {
		if feasible.PortsClash(c.Spec.HostPorts, pl.Ports) {
			return 0
		}
		want = 1
	}
	s, in := e.state, e.state.Instance
	set := s.SharedOptions(c, l, pl)
	affordable := e.affordable(set, pl.Option)
	if n := e.mostHeld(affordable, c, want, pl); n < want {
		want = n
	}
	each := int64(affordable.Count()) / enlargeLooks
	pods := append(slices.Clip(pl.Pods), instance.PodCount{Class: c.Index, Level: l})
	holding := func(n int) int {
		e.work.Spend(each)
		load := s.UsedWith(c, n, pl)
		best := -1
		pods[len(pods)-1].Count = n
		for o := range affordable.All {
			option := &in.Space.Options[o]
			if best >= 0 && option.Price >= in.Space.Options[best].Price || !feasible.Fits(load, in.Space.Net(o)) {
				continue
			}
			// Without minValues there is nothing to meet, and no need to list what stays.
			pool := int(option.Pool)
			if len(in.MinValues.Of(pool)) == 0 || in.MinValues.Met(pool, in.MinValues.Fixed(set, pods, o), load) {
				best = o
			}
		}
		return best
	}
	if want == 0 {
		return 0
	}
	if o := holding(want); o >= 0 { // always, unless minValues keep the node from it
		s.Exchange(pl, o)
		return want
	}
	n := sort.Search(want-1, func(n int) bool { return holding(n+1) < 0 })
	if n == 0 {
		return 0
	}
	s.Exchange(pl, holding(n))
	return n
}

// mostHeld is how many pods of a class more the options hold at most, up to so many, each beside the
// pods of a node.
func (e enlarger) mostHeld(options bitset.Set, c *instance.Class, want int, pl *placement.Place) int {
	space, used := e.state.Instance.Space, e.state.UsedWith(c, 0, pl)
	most, run, looks := int64(0), int32(-1), int64(0)
	for o := range options.All {
		if space.Options[o].Run == run {
			continue // it holds as much as the one before
		}
		run = space.Options[o].Run
		looks++
		net, n := space.Net(o), int64(want)
		for d, v := range c.Own {
			switch free := net[d] - used[d]; {
			case free < 0:
				n = 0
			case v > 0:
				n = min(n, free/v)
			}
		}
		if most = max(most, n); most >= int64(want) {
			break
		}
	}
	e.work.Spend(looks / enlargeLooks)
	return int(most)
}

// affordable are the options of a set that the ledger affords in the place of an old one, which is
// given back. It may be the set itself.
func (e enlarger) affordable(set bitset.Set, old int) bitset.Set {
	ledger := e.state.Ledger
	if !ledger.Tight() {
		return set
	}
	ledger.Take(old, -1)
	defer ledger.Take(old, 1)
	out, looks := set.Clone(), int64(0)
	for o := range set.All {
		if looks++; !ledger.Admits(o) {
			out.Remove(o)
		}
	}
	e.work.Spend(looks / enlargeLooks)
	return out
}
