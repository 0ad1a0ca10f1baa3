package consolidate

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/topo"
)

// mostRehearsed bounds the pairs of pods and places that are looked at for one
// move; larger moves are not rehearsed.
const mostRehearsed = 4_000_000

// Rehearse plays the moves of an answer as the cluster may play them: the
// scheduler of Kubernetes does not know the plan and puts evicted pods where most
// is free, in whatever order they come. The worst order is tried, small pods
// first. What finds no place then makes somebody buy another machine; a move of
// consolidation that does not pay with that machine is left out, and the answer's
// Stays say so. The other moves are kept in their order.
func Rehearse(f *model.Fleet, moves *model.Moves) *model.Moves {
	b := newRehearsal(f)
	out := *moves
	out.Moves, out.Stays = nil, slices.Clone(moves.Stays)
	out.After, out.Evictions = moves.Before, 0
	for i := range moves.Moves {
		mv := &moves.Moves[i]
		if st := b.rehearse(mv); st != nil {
			for _, n := range mv.Nodes {
				own := *st
				own.Node = n
				out.Stays = append(out.Stays, own)
			}
			continue
		}
		out.Moves = append(out.Moves, *mv)
		out.After -= mv.Saving
		out.Evictions += mv.Evictions
	}
	slices.SortStableFunc(out.Stays, func(x, y model.Stay) int { return x.Node - y.Node })
	return &out
}

// rehearsal is a board on which moves are played.
type rehearsal struct {
	*board
	// wholes are the nodes' room without any pod.
	wholes [][]int64
}

func newRehearsal(f *model.Fleet) *rehearsal {
	b := &rehearsal{board: newBoard(newSite(f))}
	b.reserve(nil)
	for n := range b.problem.Nodes {
		b.wholes = append(b.wholes, b.project(b.space.Vector(b.problem.Nodes[n].Allocatable, nil)))
	}
	return b
}

// whole is a bin's room without any pod.
func (b *rehearsal) whole(i int32) []int64 {
	if w := b.bins[i].ware; w >= 0 {
		return b.menu[w].net
	}
	return b.wholes[i]
}

// rehearse makes one move as the scheduler would, or says why it should not be
// made.
func (b *rehearsal) rehearse(mv *model.Move) *model.Stay {
	if mv.FromTemplate {
		return nil
	}
	start := b.mark()
	b.needed = b.needed[:0]
	var toll, least model.Money
	var nodes []int32
	for _, n := range mv.Nodes {
		nodes = append(nodes, int32(n))
		toll += model.Money(b.nodes[n].toll)
		least += model.Money(b.fleet.Terms.MinimumSaving * float64(b.nodes[n].price))
		b.shut(int32(n))
	}
	for i := range mv.New {
		w := b.wareFor(&mv.New[i])
		if w < 0 { // it is not on the menu, so that nothing can be said
			b.undo(start)
			return nil
		}
		b.buy(w)
	}
	if mv.Evictions*len(b.bins) > mostRehearsed {
		b.house()
	} else {
		b.scatter()
	}
	if b.nobodyWaits() || mv.Reason != model.DisruptUnderutilized {
		return nil
	}
	homeless := 0
	for _, class := range b.needed {
		homeless += int(max(0, b.need[class]))
	}
	b.shop.noSpot = false
	if due := max(toll, least); mv.Saving > due && b.purchase(mv.Saving-due) {
		return nil
	}
	b.undo(start)
	return stay(mv.Nodes[0], model.ReasonTightFit,
		"The %s of %s have room elsewhere only if the scheduler puts every one where it is planned; if not, %s would need another machine, for which the saving of %s is too small.",
		plural(mv.Evictions, "pod"), b.names(nodes), plural(homeless, "pod"), mv.Saving)
}

// wareFor finds a machine of a move on the menu, or -1.
func (b *rehearsal) wareFor(node *model.NewNode) int32 {
	best := node.Best()
	for w := range b.menu {
		option := &b.space.Options[b.menu[w].option]
		if option.Pool == node.Pool && option.Type == best.InstanceType && option.Offering == best.Offering {
			return int32(w)
		}
	}
	return -1
}

// scatter puts the pods that need a place, small ones first and one by one, where
// the largest share is free.
func (b *rehearsal) scatter() {
	b.sortNeeded()
	for at := len(b.needed) - 1; at >= 0; at-- {
		class := b.needed[at]
		for b.need[class] > 0 {
			i, level := b.emptiest(class)
			if i < 0 {
				break
			}
			b.put(i, class, level, 1)
		}
	}
}

// emptiest is the open bin with the largest free share that takes a pod.
func (b *rehearsal) emptiest(class int32) (int32, int8) {
	k := &b.kinds[class]
	for l := range k.levels {
		best, most := int32(-1), -1.0
		for i := range b.bins {
			i := int32(i)
			if b.bins[i].shut || !under(k.own, b.room(i)) || !b.opens(i) || !b.admits(class, k, l, i) {
				continue
			}
			if !k.plain && b.world.Room(int(class), k.levels[l].Rules, b.place(i), topo.Everything) <= 0 {
				continue
			}
			if share := b.freeShare(i, k.own); share > most {
				best, most = i, share
			}
		}
		if best >= 0 {
			return best, int8(l)
		}
	}
	return -1, 0
}

// opens reports whether the scheduler may put pods on a bin: also on nodes on which
// no move may count.
func (b *rehearsal) opens(i int32) bool {
	if !b.node(i) {
		return true
	}
	t := &b.fleet.Tenancies[i]
	return b.problem.Nodes[i].State == model.NodeReady && t.Initialized && t.Ready && !t.Marked
}

// freeShare is how much of a bin would be left with a pod, as the mean over what
// the scheduler looks at.
func (b *rehearsal) freeShare(i int32, own []int64) float64 {
	sum, n := 0.0, 0
	for d, axis := range b.dims {
		if axis != model.CPU && axis != model.Memory {
			continue
		}
		if whole := b.whole(i)[d]; whole > 0 {
			sum += float64(b.room(i)[d]-own[d]) / float64(whole)
			n++
		}
	}
	return sum / float64(max(1, n))
}
