package state

import (
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate/compiled"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// AnyPrice is the budget of purchases whose price does not matter.
const AnyPrice = model.Money(math.MaxInt64 / 4)

// Buyer buys new nodes in a state for pods which found no place.
type Buyer struct {
	st     *State
	placer Placer
	// NoSpot keeps spot options out: the bins that the purchases replace are all spot
	// ones, and replacing spot by spot is switched off. StaysSpot keeps pods off on-demand
	// options which may be on spot ones of the same NodePool: the bins are all spot ones.
	// See [Buyer.Replace].
	NoSpot, StaysSpot bool
	// load, room, pods and permitted are scratch, valid during one call.
	load, room []int64
	pods       []planner.PodsOn
	permitted  bitset.Set
	// buyers are the listed unplaced classes by option, while several nodes are bought.
	buyers buyers
	// tiers are, by class, what State.tier is for the listed ones; see [Buyer.weigh].
	tiers []int8
}

// buyers are lists of classes by option.
type buyers struct {
	// head is, by option, the number in cells of its first class and 1, 0 for none.
	head  []int32
	cells []buyerCell
}

// buyerCell is a class, and the number in cells of the next one and 1.
type buyerCell struct{ class, next int32 }

// NewBuyer is a buyer for a state.
func NewBuyer(s *State) *Buyer {
	d := s.Problem.Dims()
	return &Buyer{st: s, placer: NewPlacer(s), load: make([]int64, d), room: make([]int64, d)}
}

// Replace says in whose stead nodes are bought from now on, and with that whether spot
// nodes may be, and on-demand ones. It is called before every set of purchases that belong together: with no
// bins where a node is bought whatever it replaces.
func (b *Buyer) Replace(bins []int32) {
	s := b.st
	b.StaysSpot = len(bins) > 0
	for _, i := range bins {
		if s.Bins.IsNode(i) {
			b.StaysSpot = b.StaysSpot && s.Problem.Nodes[i].Spot
		} else {
			b.StaysSpot = b.StaysSpot && s.Bins.Option(i).Spot
		}
	}
	b.NoSpot = b.StaysSpot && !s.Problem.Input.Terms.SpotToSpot
}

// refuses reports whether pods of a class must not go to a new node of an option.
func (b *Buyer) refuses(class int32, o *compiled.NodeOption) bool {
	if !b.StaysSpot || o.Spot {
		return false
	}
	_, offering := b.st.Problem.Space.Offering(o.Option)
	return b.st.Problem.StaysSpot(class, int(b.st.Problem.Space.Options[o.Option].Pool), offering)
}

// refusesAny reports whether a purchase must not be made for its pods, whatever it costs.
func (b *Buyer) refusesAny(pu *Purchase) bool {
	o := &b.st.Problem.Options[pu.Option]
	return b.NoSpot && o.Spot || slices.ContainsFunc(pu.Pods, func(r Relocated) bool { return b.refuses(r.Class, o) })
}

// mayBuy reports whether one more node of an option may be bought, whatever it costs.
func (b *Buyer) mayBuy(o *compiled.NodeOption) bool {
	return !(b.NoSpot && o.Spot) && b.st.Ledger.Admits(o.Option)
}

// enoughForValue is how much more than the shadow price of its pods a single node may
// cost for several nodes not to be tried.
const enoughForValue = 1.02

// Buy buys nodes for all listed unplaced pods, for at most the budget, and reports
// whether that succeeded; otherwise the state is as before.
//
// It takes the cheapest node that holds all of them, unless that costs noticeably more
// than the pods are worth and several nodes are cheaper.
func (b *Buyer) Buy(budget model.Money) bool {
	start := b.st.Mark()
	before := b.st.price
	if b.buyOne(budget) {
		price := b.st.price - before
		if float64(price) <= enoughForValue*b.valueOfLast() {
			return true
		}
		b.st.Undo(start)
		if b.buySeveral(price - 1) {
			return true
		}
		b.st.Undo(start)
		return b.buyOne(price)
	}
	if b.buySeveral(budget) {
		return true
	}
	b.st.Undo(start)
	return false
}

// valueOfLast is the shadow price of the pods of the last purchase.
func (b *Buyer) valueOfLast() float64 {
	sum := 0.0
	for at := len(b.st.log) - 1; at >= 0 && b.st.log[at].Kind == Put; at-- {
		r := b.st.log[at].Relocated
		sum += b.st.Problem.Classes[r.Class].Value * float64(r.Count)
	}
	return sum
}

// buyOne buys the cheapest node that holds all listed unplaced pods.
func (b *Buyer) buyOne(budget model.Money) bool {
	s := b.st
	clear(b.load)
	for _, class := range s.Unplaced.classes {
		if n := int64(s.Unplaced.count[class]); n > 0 {
			feasible.Add(b.load, s.Problem.Classes[class].Size, n)
		}
	}
	for at := range b.worthLooking(true, budget) {
		o := &s.Problem.Options[at]
		if !feasible.Fits(b.load, o.Net) || !b.mayBuy(o) || !b.allPermit(at) {
			continue
		}
		start := s.Mark()
		i := s.Buy(int32(at))
		if b.Fill(i) && s.Unplaced.None() && b.Varied(i) {
			return true
		}
		s.Undo(start)
	}
	return false
}

// worthLooking yields, by ascending price, the options up to a price on which all of the
// classes of listed unplaced pods may be, or any of them, and behind them those that were added
// to the problem, unless some option costs more.
func (b *Buyer) worthLooking(all bool, most model.Money) func(yield func(at int) bool) {
	p := b.st.Problem
	b.permit(all)
	b.weigh()
	return func(yield func(at int) bool) {
		for at := range b.permitted.All {
			if p.Options[at].Price > most || !yield(at) {
				return
			}
		}
		for at := p.Permitted.Listed; at < len(p.Options); at++ {
			if at > 0 && p.Options[at-1].Price > most || p.Options[at].Price > most || !yield(at) {
				return
			}
		}
	}
}

// permit writes into permitted the options on which all or any of the classes of listed
// unplaced pods may be.
func (b *Buyer) permit(all bool) {
	first := true
	for _, class := range b.st.Unplaced.classes {
		if b.st.Unplaced.count[class] == 0 {
			continue
		}
		switch own := b.st.Problem.Permitted.ByClass[class]; {
		case first:
			b.permitted, first = append(b.permitted[:0], own...), false
		case all:
			b.permitted.And(own)
		default:
			b.permitted.Or(own)
		}
	}
	if first {
		b.permitted = b.permitted[:0]
	}
}

// allPermit reports whether all listed unplaced pods may go to a node option.
func (b *Buyer) allPermit(at int) bool {
	for _, class := range b.st.Unplaced.classes {
		if b.st.Unplaced.count[class] > 0 && b.levelFor(class, at) < 0 {
			return false
		}
	}
	return true
}

// levelFor is the first level at which listed unplaced pods of a class may go to a node option,
// by what does not depend on other pods, or -1.
func (b *Buyer) levelFor(class int32, at int) int {
	p := b.st.Problem
	level := p.Classes[class].LevelFor(p.Options[at].Option)
	if level < 0 || b.refuses(class, &p.Options[at]) || !b.st.Unplaced.Allows(class, level) ||
		len(b.tiers) > 0 && p.Tier(at) > int(b.tiers[class]) {
		return -1
	}
	return level
}

// weigh notes how light the NodePools may be of which nodes are bought for each listed class.
// It is called before options are looked at, since what is left of limits decides.
func (b *Buyer) weigh() {
	if len(b.st.Problem.Permitted.ByTier) == 0 {
		return
	}
	if b.tiers == nil {
		b.tiers = make([]int8, len(b.st.Problem.Classes))
	}
	for _, class := range b.st.Unplaced.classes {
		if b.st.Unplaced.count[class] > 0 {
			b.tiers[class] = int8(min(math.MaxInt8, b.st.tier(class)))
		}
	}
}

// Fill puts the listed unplaced pods on a new node, as many as it holds, and reports
// whether there were any.
func (b *Buyer) Fill(i int32) bool {
	s := b.st
	option := s.Bins.Option(i)
	some := false
	for _, class := range s.Unplaced.classes {
		c := &s.Problem.Classes[class]
		if s.Unplaced.count[class] > 0 && (s.tooLight(class, i) || b.refuses(class, option)) {
			continue
		}
		for level := 0; level < len(c.Levels) && s.Unplaced.count[class] > 0; level++ {
			if !c.Levels[level].Options.Has(option.Option) || !s.Unplaced.Allows(class, level) {
				continue
			}
			for s.Unplaced.count[class] > 0 { // counts change with each pod, and with them the room
				n := s.Bins.CountFitting(c, i, s.Unplaced.count[class])
				if n > 0 && !c.Plain {
					n = int32(min(int(n), s.TopologyRoom(c, level, i)))
				}
				if n <= 0 {
					break
				}
				s.Put(i, Relocated{class, n, int8(level)})
				some = true
			}
		}
	}
	return some
}

// buySeveral buys, one after the other, the node on which the pods that are left have
// the highest shadow price for its price. On failure it leaves what it has bought.
func (b *Buyer) buySeveral(budget model.Money) bool {
	s := b.st
	before := s.price
	for first := true; ; first = false {
		left := budget - (s.price - before)
		if b.buyOne(left) {
			return true
		}
		if first {
			b.listBuyers()
		}
		best, most := int32(-1), 0.0
		for at := range b.worthLooking(false, left-1) {
			o := &s.Problem.Options[at]
			if !b.mayBuy(o) {
				continue
			}
			if score := b.appraise(at) / max(1, float64(o.Price)); score > most*(1+1e-9) {
				best, most = int32(at), score
			}
		}
		if best < 0 {
			return false
		}
		i := s.Buy(best)
		if !b.Fill(i) || !b.Varied(i) {
			return false
		}
	}
}

// listBuyers lists the unplaced classes by the options on which they may be, in their order.
func (b *Buyer) listBuyers() {
	p := b.st.Problem
	if len(b.buyers.head) < p.Permitted.Listed {
		b.buyers.head = make([]int32, p.Permitted.Listed)
	}
	clear(b.buyers.head)
	b.buyers.cells = b.buyers.cells[:0]
	for i := len(b.st.Unplaced.classes) - 1; i >= 0; i-- {
		class := b.st.Unplaced.classes[i]
		if b.st.Unplaced.count[class] == 0 {
			continue
		}
		for at := range p.Permitted.ByClass[class].All {
			b.buyers.cells = append(b.buyers.cells, buyerCell{class, b.buyers.head[at]})
			b.buyers.head[at] = int32(len(b.buyers.cells))
		}
	}
}

// appraise is the shadow price of the pods with which a new node would be filled.
func (b *Buyer) appraise(at int) float64 {
	s := b.st
	o := &s.Problem.Options[at]
	copy(b.room, o.Net)
	sum := 0.0
	if at < s.Problem.Permitted.Listed {
		for cell := b.buyers.head[at]; cell > 0; cell = b.buyers.cells[cell-1].next {
			sum += b.fillRoom(b.buyers.cells[cell-1].class, at)
		}
		return sum
	}
	for _, class := range s.Unplaced.classes {
		sum += b.fillRoom(class, at)
	}
	return sum
}

// fillRoom takes what the unplaced pods of a class would take of a new node's room, and returns
// their shadow price.
func (b *Buyer) fillRoom(class int32, option int) float64 {
	s := b.st
	n := int64(s.Unplaced.count[class])
	if n == 0 {
		return 0
	}
	c := &s.Problem.Classes[class]
	level := b.levelFor(class, option)
	if level < 0 {
		return 0
	}
	for d, size := range c.Size {
		if size > 0 {
			n = min(n, max(0, b.room[d])/size)
		}
	}
	if n > 0 && !c.Plain {
		at := topology.Place{ID: s.Bins.Len(), Node: -1, Option: s.Problem.Options[option].Option}
		n = min(n, int64(s.Counts.RoomInTurn(c.Levels[level].Rules, at)))
	}
	if n == 0 {
		return 0
	}
	feasible.Add(b.room, c.Size, -n)
	return c.Value * float64(n)
}

// Varied reports whether the minValues of the pool are met by what else could be
// bought for the pods of a new node.
func (b *Buyer) Varied(i int32) bool {
	if !b.st.Problem.NeedsVariety {
		return true
	}
	return b.st.Problem.Prepared.Varied(b.st.Bins.Option(i).Option, b.podsOn(i))
}

// podsOn is the pods of a bin in the planner's words, valid until the next call.
func (b *Buyer) podsOn(i int32) []planner.PodsOn {
	b.pods = b.pods[:0]
	for _, r := range b.st.Bins.At(i).Pods {
		b.pods = append(b.pods, planner.PodsOn{Class: int(r.Class), Level: int(r.Level), Count: int(r.Count)})
	}
	return b.pods
}

// Describe is a new node with all offerings that would hold its pods and that are left
// of limits without the node itself. Pods are not listed. The first of them is what will be bought:
// from then on it takes of limits and quotas, in the place of the option that was chosen for room.
func (b *Buyer) Describe(i int32) model.NewNode {
	from := bookedFor(b.st, i)
	b.st.Ledger.Take(int(from), -1)
	node, best := b.st.Problem.Prepared.Machine(b.st.Ledger, int(from), b.podsOn(i))
	b.st.Ledger.Take(int(from), 1)
	if to := int32(best); to != from {
		exchange(b.st, Change{Kind: Exchanged, Bin: i, from: from, to: to})
	}
	node.Offerings = slices.Clone(node.Offerings)
	return node
}

// Build buys a sub-plan's new nodes and puts unplaced pods where it says, as far as
// rules allow. New nodes which no pod enters are not bought. It reports whether limits
// and quotas have room for all new nodes of the sub-plan.
func (b *Buyer) Build(p *SubPlan) bool {
	s := b.st
	start := s.Mark()
	purchases, all := slices.Clone(p.Purchases), true
	for {
		bins := make([]int32, 0, len(purchases))
		purchases = slices.DeleteFunc(purchases, func(pu Purchase) bool {
			if b.refusesAny(&pu) {
				return true
			}
			if !s.Ledger.Admits(s.Problem.Options[pu.Option].Option) {
				all = false
				return true
			}
			bins = append(bins, s.Buy(pu.Option))
			return false
		})
		assignments := slices.Clone(p.Assignments)
		for i := range purchases {
			for _, r := range purchases[i].Pods {
				assignments = append(assignments, Assignment{bins[i], r})
			}
		}
		b.placer.PutAll(assignments)
		at := -1
		before := len(purchases)
		purchases = slices.DeleteFunc(purchases, func(Purchase) bool {
			at++
			return b.wasteful(bins[at])
		})
		if len(purchases) == before {
			return all
		}
		s.Undo(start)
	}
}

// BuildLoosely buys new nodes and lets the pods find places by themselves. It reports
// whether all have places and no new node is wasteful; otherwise the state is as
// before.
//
// The scheduler does not know where the plan has a pod's place, so an arrangement that
// comes about by itself is better than one that must be told.
func (b *Buyer) BuildLoosely(purchases []Purchase) bool {
	s := b.st
	start := s.Mark()
	for _, pu := range purchases {
		if b.refusesAny(&pu) || !b.mayBuy(&s.Problem.Options[pu.Option]) {
			s.Undo(start)
			return false
		}
		s.Buy(pu.Option)
	}
	good := b.placer.PlaceAll()
	for at := start; good && at < len(s.log); at++ {
		good = s.log[at].Kind != Bought || !b.wasteful(s.log[at].Bin)
	}
	if !good {
		s.Undo(start)
	}
	return good
}

// wasteful reports whether a new node has no pods, or leaves too few offerings to
// choose from.
func (b *Buyer) wasteful(i int32) bool {
	return len(b.st.Bins.At(i).Pods) == 0 || !b.Varied(i)
}
