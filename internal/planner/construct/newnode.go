package construct

import (
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// opener chooses the option of a new node.
type opener struct {
	state  *placement.State
	params *Params
	// total is what all pods take, by dimension, if scarcity decides; else nil.
	total []float64
}

// open buys the node on which a pod of the class costs least, counting how many of the
// wanted ones it would hold, puts these on it and returns how many.
func (op opener) open(c *instance.Class, l int, sl *slot, want int) int {
	s, rules, options := op.state, c.Levels[l].Rules, sl.options
	if sl.open {
		options = options.Clone()
		s.Domains.Counts.KeepAdmitting(rules, -1, options)
	}
	fresh := &placement.Place{Place: topology.Place{ID: len(s.Instance.Space.Problem.Nodes) + len(s.NewNodes), Node: -1}}
	want = min(want, s.Domains.Counts.Room(rules, fresh.Place, topology.Hosts))
	if want == 0 {
		return 0
	}
	if op.params.OneByOne {
		want = 1
	}
	best, bestCount := op.choose(c, fresh, options, want, nil)
	if c.Colocated {
		// Other pods can only go where these are: the first node keeps room for all of
		// them, if there is one that large, or else for some of them.
		o, n := -1, 0
		if joining, room := joiningOptions(s, c, options); room != nil && op.params.Halvings == 0 {
			o, n = op.choose(c, fresh, joining, want, room)
		}
		if o < 0 {
			o, n = op.chooseWith(op.reservedFor(c), c, fresh, options, want)
		}
		if o >= 0 {
			best, bestCount = o, n
		}
	}
	if best < 0 {
		return 0
	}
	fresh = s.NewNode(best)
	fresh.Open = sl.open
	fresh.Options.And(options)
	s.Buy(fresh)
	s.Put(c, l, bestCount, fresh)
	return bestCount
}

// reservedFor is the reserved class: the first node of a class keeps room for its pods, as
// far as that goes, if there is no node that holds all pods that wait for it.
func (op opener) reservedFor(c *instance.Class) *instance.Class {
	if op.params.Reserved == nil && waitsFor(op.state, c, c) {
		return c
	}
	return op.params.Reserved
}

// chooseWith chooses an option with room for as many pods of a reserved class as one
// holds, by halves. It returns -1 if there is none or no class.
func (op opener) chooseWith(reserved, c *instance.Class, fresh *placement.Place, options bitset.Set, want int) (best, bestCount int) {
	if reserved == nil {
		return -1, 0
	}
	common := options.Clone()
	common.And(reserved.Levels[len(reserved.Levels)-1].Options)
	room := make([]int64, op.state.Instance.Space.Dims.Count)
	for n := max(1, int64(op.state.Left[reserved.Index])>>op.params.Halvings); n > 0; n /= 2 {
		for d, v := range reserved.Own {
			room[d] = min(feasible.Unlimited, v*n)
		}
		if best, bestCount = op.choose(c, fresh, common, want, room); best >= 0 {
			return best, bestCount
		}
	}
	return -1, 0
}

// choose finds the option on which a pod of the class costs least, counting how many of
// the wanted ones it holds next to the room to be kept, which may be nil. It returns -1
// if none holds a pod.
func (op opener) choose(c *instance.Class, fresh *placement.Place, options bitset.Set, want int, keep []int64) (best, bestCount int) {
	in := op.state.Instance
	best = -1
	bestScore := 0.0
	run, fits := int32(-1), 0
	alternatives := len(c.Spec.NodeAlternatives) > 1 || len(c.Spec.VolumeAlternatives) > 1
	for o := range options.All {
		option := &in.Space.Options[o]
		if option.Run != run || alternatives && len(in.MinValues.Of(int(option.Pool))) > 0 {
			run, fits = option.Run, op.state.VariedCapacity(c, fresh, o, options, want)
			if keep != nil {
				fits = min(fits, placement.Fitting(c.Own, keep, in.Space.Net(o)))
			}
		}
		if fits == 0 || !op.state.Ledger.Admits(o) {
			continue
		}
		score := float64(option.Price) / float64(fits)
		if op.total != nil {
			score = op.scarcityCost(o)
		}
		if best < 0 || score < bestScore {
			best, bestCount, bestScore = o, fits, score
		}
	}
	return best, bestCount
}

// scarcityCost scores an option by how much of the scarcest line of the ledger one node
// takes for the share of all pods that it could hold. Smaller is better, and the price
// only decides between equals.
func (op opener) scarcityCost(option int) float64 {
	space := op.state.Instance.Space
	net, share := space.Net(option), 1.0
	for d, total := range op.total {
		if total > 0 {
			share = min(share, float64(net[d])/total)
		}
	}
	scarcest := 0.0
	for _, u := range space.Uses(option) {
		scarcest = max(scarcest, float64(u.Amount)/float64(max(1, op.state.Ledger.Left(u.Line))))
	}
	if share <= 0 {
		return scarcest * 1e12
	}
	return scarcest/share + float64(space.Options[option].Price)*1e-18
}

// joiningOptions narrow the options to those that all pods may use which can only go
// where pods of this class are, and say what room those need. The room is nil when no
// pod waits or no option suits all.
func joiningOptions(s *placement.State, c *instance.Class, options bitset.Set) (bitset.Set, []int64) {
	room, others := waitingRoom(s, c)
	common := options.Clone()
	for _, i := range others {
		common.And(s.Instance.Classes[i].Levels[0].Options)
	}
	if !common.Any() {
		return nil, nil
	}
	return common, room
}
