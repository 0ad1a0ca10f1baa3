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
		budget -= model.Money(b.fleet.Terms.MinimumSaving * float64(freed))
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

// clear shuts the trial's bins, if all of them may be.
func (b *board) clear(t *trial) bool {
	spotOnly := true
	for _, i := range t.shut {
		if b.bins[i].shut || b.bins[i].frozen {
			return false
		}
		if b.node(i) {
			if b.nodes[i].stay != nil || !b.mayShut(i) {
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
