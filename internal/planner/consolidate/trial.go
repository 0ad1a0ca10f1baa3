package consolidate

import (
	"github.com/nodeautoprovision/nap/internal/model"
)

// trial is a set of bins to be given up, and how their pods are to be housed.
type trial struct {
	shut []int32
	// lift are bins whose guests look for a better place at the same time.
	lift []int32
	// buy allows machines to be bought for what finds no room; first says that
	// this is to be tried before looking for room.
	buy, first bool
	// design says where the pods are to go, as far as that is known.
	design *parcel
}

// objective is what the board costs per hour, evictions included.
func (b *board) objective() float64 { return float64(b.price) + b.toll }

// attempt makes a trial's changes and returns what they gain per hour. When they
// are not feasible or gain nothing, the board is as before and the gain is zero.
func (b *board) attempt(t *trial) float64 {
	b.trials++
	start, before := b.mark(), b.objective()
	b.needed = b.needed[:0]
	if !b.clear(t) {
		b.undo(start)
		return 0
	}
	freed := model.Money(0)
	for _, i := range t.shut {
		if b.node(i) {
			freed += b.nodes[i].price
		}
	}
	budget := model.Money(before-b.objective()) - 1
	if t.buy {
		budget -= b.fleet.Terms.LeastSaving(freed)
	}
	if t.design != nil {
		built := b.price
		b.sortNeeded()
		b.build(t.design)
		budget -= b.price - built
	}
	if budget < 0 {
		b.undo(start)
		return 0
	}
	if t.first && t.buy {
		b.sortNeeded()
		if b.purchase(budget) {
			return before - b.objective()
		}
	}
	if !b.house() && (!t.buy || !b.purchase(budget)) {
		b.undo(start)
		return 0
	}
	gain := before - b.objective()
	if gain <= 0 {
		b.undo(start)
		return 0
	}
	return gain
}

// wouldGain is what a trial would gain; the board stays as it is.
func (b *board) wouldGain(t *trial) float64 {
	start := b.mark()
	gain := b.attempt(t)
	b.undo(start)
	return gain
}

// clear shuts the trial's bins, if all of them may be.
func (b *board) clear(t *trial) bool {
	spotOnly := true
	for _, i := range t.shut {
		if b.bins[i].shut || b.bins[i].frozen {
			return false
		}
		if b.node(i) {
			if !b.candidate(i) || !b.mayShut(i) {
				return false
			}
			spotOnly = spotOnly && b.nodes[i].spot
		} else {
			spotOnly = spotOnly && b.menu[b.bins[i].ware].spot
		}
		b.shut(i)
	}
	for _, i := range t.lift {
		if !b.bins[i].shut && !b.bins[i].frozen {
			b.lift(i)
		}
	}
	b.shop.noSpot = spotOnly && !b.fleet.Terms.SpotToSpot
	return true
}
