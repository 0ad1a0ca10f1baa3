package consolidate

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// shop chooses machines for pods that found no place.
type shop struct {
	load, room []int64
	pods       []planner.PodsOn
	// noSpot keeps spot machines out: those that would replace nothing but spot
	// nodes while that is switched off.
	noSpot bool
}

func (s *shop) init(b *board) { s.load, s.room = make([]int64, b.d), make([]int64, b.d) }

// purchase buys machines for all pods that need a place, for at most the budget,
// and reports whether that succeeded; otherwise the board is as before.
func (b *board) purchase(budget model.Money) bool {
	start := b.mark()
	before := b.price
	one := b.buyOne(budget)
	if one && float64(b.price-before) <= 1.02*b.worthOfAll() {
		return true
	}
	if one {
		// A single machine holds them all; several may be cheaper.
		price := b.price - before
		b.undo(start)
		if b.buySeveral(price - 1) {
			return true
		}
		b.undo(start)
		return b.buyOne(price)
	}
	if b.buySeveral(budget) {
		return true
	}
	b.undo(start)
	return false
}

// worthOfAll is what the pods of the last purchase are worth.
func (b *board) worthOfAll() float64 {
	sum := 0.0
	for at := len(b.log) - 1; at >= 0 && b.log[at].kind == didPut; at-- {
		sum += b.kinds[b.log[at].class].worth * float64(b.log[at].n)
	}
	return sum
}

// buyOne buys the cheapest machine that holds all pods in need.
func (b *board) buyOne(budget model.Money) bool {
	s := &b.shop
	clear(s.load)
	for _, class := range b.needed {
		if n := int64(b.need[class]); n > 0 {
			for d, size := range b.kinds[class].own {
				s.load[d] += size * n
			}
		}
	}
	for w := range b.menu {
		ware := &b.menu[w]
		if ware.price > budget {
			return false
		}
		if s.noSpot && ware.spot || !under(s.load, ware.net) || !b.ledger.Admits(ware.option) || !b.allAllow(ware.option) {
			continue
		}
		start := b.mark()
		i := b.buy(int32(w))
		if b.stock(i) && b.nobodyWaits() && b.variedEnough(i) {
			return true
		}
		b.undo(start)
	}
	return false
}

// allAllow reports whether all pods in need may go to an option.
func (b *board) allAllow(option int) bool {
	for _, class := range b.needed {
		if b.need[class] > 0 && b.levelFor(class, option) < 0 {
			return false
		}
	}
	return true
}

// levelFor is the first level of preferences at which pods of the class may go to
// an option, or -1.
func (b *board) levelFor(class int32, option int) int {
	levels := b.kinds[class].levels
	for l := range levels {
		if levels[l].Options.Has(option) {
			return l
		}
	}
	return -1
}

// stock fills a machine with the pods in need, as many as it holds, and reports
// whether there were any.
func (b *board) stock(i int32) bool {
	option := b.menu[b.bins[i].ware].option
	some := false
	for _, class := range b.needed {
		k := &b.kinds[class]
		for l := 0; l < len(k.levels) && b.need[class] > 0; l++ {
			if !k.levels[l].Options.Has(option) {
				continue
			}
			n := b.fits(k, i, b.need[class])
			if n > 0 && !k.plain {
				n = int32(min(int(n), b.counts.Room(k.levels[l].Rules, b.place(i), topology.Everything)))
			}
			if n > 0 {
				b.put(i, class, int8(l), n)
				some = true
			}
		}
	}
	return some
}

func (b *board) nobodyWaits() bool {
	for _, class := range b.needed {
		if b.need[class] > 0 {
			return false
		}
	}
	return true
}

// variedEnough reports whether the pool's minValues are met by what else could be
// bought for the pods of a machine.
func (b *board) variedEnough(i int32) bool {
	if !b.varied {
		return true
	}
	return b.ground.Varied(b.menu[b.bins[i].ware].option, b.guestList(i))
}

// guestList is the bin's guests in the planner's words, valid until the next call.
func (b *board) guestList(i int32) []planner.PodsOn {
	b.shop.pods = b.shop.pods[:0]
	for _, g := range b.bins[i].guests {
		b.shop.pods = append(b.shop.pods, planner.PodsOn{Class: int(g.class), Level: int(g.level), Count: int(g.n)})
	}
	return b.shop.pods
}

// buySeveral buys, one after the other, the machine on which the pods that are
// left are worth most for its price.
func (b *board) buySeveral(budget model.Money) bool {
	before := b.price
	for {
		left := budget - (b.price - before)
		if b.buyOne(left) {
			return true
		}
		best, most := int32(-1), 0.0
		for w := range b.menu {
			ware := &b.menu[w]
			if ware.price >= left {
				break
			}
			if b.shop.noSpot && ware.spot || !b.ledger.Admits(ware.option) {
				continue
			}
			if score := b.appraise(ware) / math.Max(1, float64(ware.price)); score > most*(1+1e-9) {
				best, most = int32(w), score
			}
		}
		if best < 0 {
			return false
		}
		i := b.buy(best)
		if !b.stock(i) || !b.variedEnough(i) {
			return false
		}
	}
}

// appraise is what the pods are worth with which a machine would be filled.
func (b *board) appraise(w *ware) float64 {
	room := b.shop.room
	copy(room, w.net)
	sum := 0.0
	at := topology.Place{ID: len(b.bins), Node: -1, Option: w.option}
	for _, class := range b.needed {
		n := int64(b.need[class])
		if n == 0 {
			continue
		}
		k := &b.kinds[class]
		l := b.levelFor(class, w.option)
		if l < 0 {
			continue
		}
		for d, size := range k.own {
			if size > 0 {
				n = min(n, max(0, room[d])/size)
			}
		}
		if n > 0 && !k.plain {
			n = min(n, int64(b.counts.Room(k.levels[l].Rules, at, topology.Everything)))
		}
		if n == 0 {
			continue
		}
		for d, size := range k.own {
			room[d] -= size * n
		}
		sum += k.worth * float64(n)
	}
	return sum
}
