package planner

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// shelves remember how sets of options were divided by topology, since many
// classes ask for the same. Sets are told apart by where they are: those of
// classes are shared by all that have equal ones.
type shelves struct {
	cells map[string][]feasible.Set
	tiers map[tieredSet]feasible.Set
	// open are sets without what the ruling shuts.
	open map[*uint64]feasible.Set
	cut  map[cutSet][]shelf
	// aisles are by the set of options and the cell of which they are part.
	aisles map[cellSet]*aisle
	// rates are the prices of units, by option and dimension, of the options
	// that were worth buying when they were worked out.
	rates []float64
	rated *uint64
}

type tieredSet struct {
	set  *uint64
	tier int
}

type cutSet struct {
	cells *feasible.Set
	set   *uint64
}

type cellSet struct{ cell, set, among *uint64 }

// aisle is what is worth buying of a cell for pods of any size: the cheapest first,
// and the bargains.
type aisle struct{ byPrice, bargains []int }

// shelf is the part of a set of options that is in one cell. The cell is nil unless
// others share it.
type shelf struct {
	options, cell feasible.Set
	first         int
	// worth are the options that were worth buying when they were looked for, and
	// bargains those of them that may be the cheapest for some class.
	worth, bargains []int
	among           *uint64
}

func newShelves() shelves {
	return shelves{cells: map[string][]feasible.Set{}, tiers: map[tieredSet]feasible.Set{}, open: map[*uint64]feasible.Set{}, cut: map[cutSet][]shelf{}, aisles: map[cellSet]*aisle{}}
}

// inTier are the options of a class's set whose pools have the tier.
func (b *builder) inTier(set feasible.Set, tier int) feasible.Set {
	if b.space.Tiers == 1 || len(set) == 0 {
		return set
	}
	id := tieredSet{&set[0], tier}
	own, ok := b.shelves.tiers[id]
	if !ok {
		own = set.Clone()
		own.And(b.space.Tier(tier))
		b.shelves.tiers[id] = own
	}
	return own
}

// allowed are the options of a set that the ruling does not shut.
func (b *builder) allowed(set feasible.Set) feasible.Set {
	if b.ruling.shut == nil || len(set) == 0 {
		return set
	}
	open, ok := b.shelves.open[&set[0]]
	if !ok {
		open = set.Clone()
		open.AndNot(b.ruling.shut)
		b.shelves.open[&set[0]] = open
	}
	return open
}

// newSlots groups the options of a weight on which machines for a class may be bought
// by the class's topology domains, the cheapest for this class first.
func (b *builder) newSlots(c *instance.Class, l, tier int, keys []int) []slot {
	set := b.sold(c, l, tier)
	if !set.Any() {
		return nil
	}
	whole := b.allowed(b.inTier(b.space.Interned(c.Levels[l].Static), tier))
	list := b.shelve(c, set, keys)
	rules := c.Levels[l].Rules
	most := rules.PerNode()
	if len(c.Spec.HostPorts) > 0 {
		most = 1
	}
	out := make([]slot, len(list))
	for i := range list {
		s := &list[i]
		out[i] = slot{kind: onNew, rep: topology.Place{ID: -1, Node: -1, Option: s.first}, option: s.options}
		if len(list) > 1 {
			most := most
			if b.variant.few {
				most = min(most, b.left[c.Index], b.counts.SpreadRoom(rules, out[i].rep))
			}
			out[i].cost = b.cheapest(c, s, whole, most)
		}
	}
	slices.SortStableFunc(out, func(a, b slot) int { return cmp.Compare(a.cost, b.cost) })
	if b.whim != nil && len(out) > 1 && b.whim.IntN(4) == 0 {
		first := b.whim.IntN(len(out))
		out[0], out[first] = out[first], out[0]
	}
	open := b.openSlots(c, l, set)
	if len(open) > 0 && b.whim != nil && b.whim.IntN(4) == 0 {
		return append(open, out...)
	}
	return append(out, open...)
}

// shelve divides a set by the cells of the class's partition.
func (b *builder) shelve(c *instance.Class, set feasible.Set, keys []int) []shelf {
	cells, shared := b.partition(c, keys)
	if len(cells) == 0 {
		return nil
	}
	id := cutSet{&cells[0], &set[0]}
	if known, ok := b.shelves.cut[id]; ok && shared {
		return known
	}
	var out []shelf
	for _, cell := range cells {
		own := cell.Clone()
		own.And(set)
		if first := own.Next(0); first >= 0 {
			s := shelf{options: own, first: first}
			if shared {
				s.cell = cell
			}
			out = append(out, s)
		}
	}
	if shared {
		b.shelves.cut[id] = out
	}
	return out
}

// partition divides all options into those that topology cannot tell apart for
// the class. Classes with the same keys share it, which the second result
// tells, unless filters of counters make the class special.
func (b *builder) partition(c *instance.Class, keys []int) ([]feasible.Set, bool) {
	special := b.order.Filtered(c.Index)
	id := make([]byte, 0, 2*len(keys))
	for _, k := range keys {
		id = binary.AppendUvarint(id, uint64(k))
	}
	if cells, ok := b.shelves.cells[string(id)]; ok && !special {
		return cells, true
	}
	var cells []feasible.Set
	index := map[string]int{}
	for o := range b.space.Options {
		domains := b.domains(c.Index, onNew, keys, topology.Place{ID: -1, Node: -1, Option: o})
		i, ok := index[string(domains)]
		if !ok {
			i = len(cells)
			index[string(domains)] = i
			cells = append(cells, feasible.NewSet(len(b.space.Options)))
		}
		cells[i].Add(o)
	}
	if !special {
		b.shelves.cells[string(id)] = cells
	}
	return cells, !special
}

// cheapest is what a pod of the class costs on a shelf where it costs least, to
// compare domains. The shelf is part of the whole set, which ignores how large the
// pod is. Most is how many pods one machine may hold whatever its size. What has run
// out does not count.
func (b *builder) cheapest(c *instance.Class, s *shelf, whole feasible.Set, most int) float64 {
	counted, tight := b.variant.few || most < topology.NoLimit, b.ledger.Tight()
	if s.cell != nil && !tight {
		if a := b.aisleOf(s.cell, whole); counted {
			return b.leastFor(c, a.byPrice, s.options, most)
		} else if least, held := b.leastOf(c, a.bargains, s.options); held {
			return least
		}
	}
	if s.among != &b.reduced[0] {
		s.worth, s.bargains, s.among = b.worthOf(s.options), nil, &b.reduced[0]
	}
	switch {
	case tight:
		return b.leastAdmitted(c, s.worth, counted, most)
	case counted:
		return b.leastFor(c, s.worth, s.options, most)
	}
	if s.bargains == nil {
		s.bargains = b.bargains(s.worth)
	}
	least, _ := b.leastOf(c, s.bargains, s.options)
	return least
}

// worthOf are the options of a set that are worth buying, the cheapest first.
func (b *builder) worthOf(set feasible.Set) []int {
	both := set.Clone()
	both.And(b.reduced)
	list := slices.AppendSeq(make([]int, 0, both.Count()), both.All)
	slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(b.space.Options[x].Price, b.space.Options[y].Price) })
	return list
}

// leastFor is what a pod of the class costs on those of the listed options in the set,
// the cheapest first, where so many share a machine at most.
func (b *builder) leastFor(c *instance.Class, list []int, set feasible.Set, most int) float64 {
	least := math.Inf(1)
	for _, o := range list {
		if float64(b.space.Options[o].Price)/float64(max(1, most)) >= least {
			break
		}
		if set.Has(o) {
			least = min(least, b.countedCost(c, o, most))
		}
	}
	return least
}

// leastAdmitted is the same for options of which some have run out.
func (b *builder) leastAdmitted(c *instance.Class, list []int, counted bool, most int) float64 {
	least := math.Inf(1)
	for _, o := range list {
		switch {
		case !b.ledger.Admits(o):
		case counted:
			least = min(least, b.countedCost(c, o, most))
		default:
			least = min(least, b.fluidCost(c, o))
		}
	}
	return least
}

// countedCost is the share of the option's price that one pod pays when the machine
// holds as many of them as it can, but no more than most.
func (b *builder) countedCost(c *instance.Class, option, most int) float64 {
	o := &b.space.Options[option]
	return float64(o.Price) / float64(max(1, min(most, count(c.Own, nil, o.Net))))
}

// leastOf is what a pod of the class costs on those of the listed options where it
// costs least, and whether one of these is in the set.
func (b *builder) leastOf(c *instance.Class, list []int, set feasible.Set) (least float64, held bool) {
	least = math.Inf(1)
	for _, o := range list {
		cost := b.fluidCost(c, o)
		if cost < least {
			least, held = cost, false
		}
		held = held || cost == least && set.Has(o)
	}
	return least, held
}

// aisleOf is the aisle of a cell and a set: where the best option for a pod holds it,
// nothing else has to be looked at.
func (b *builder) aisleOf(cell, set feasible.Set) *aisle {
	id := cellSet{&cell[0], &set[0], &b.reduced[0]}
	a, ok := b.shelves.aisles[id]
	if !ok {
		both := cell.Clone()
		both.And(set)
		worth := b.worthOf(both)
		a = &aisle{worth, b.bargains(worth)}
		b.shelves.aisles[id] = a
	}
	return a
}

// bargains are those of the options that no other one beats in the price of every
// dimension's unit. Those that come last, which are mostly the largest of their
// kind, are looked at first: they often beat the rest.
func (b *builder) bargains(worth []int) []int {
	var out []int
	for _, o := range slices.Backward(worth) {
		mine := b.ratesOf(o)
		if slices.ContainsFunc(out, func(k int) bool { return beats(b.ratesOf(k), mine) }) {
			continue
		}
		out = slices.DeleteFunc(out, func(k int) bool { return beats(mine, b.ratesOf(k)) })
		out = append(out, o)
	}
	return out
}

// beats reports whether no rate of x exceeds that of y.
func beats(x, y []float64) bool {
	for d, v := range x {
		if v > y[d] {
			return false
		}
	}
	return true
}

// fluidCost is the share of the option's price that one pod pays when the
// machine is full of such pods.
func (b *builder) fluidCost(c *instance.Class, option int) float64 {
	cost := 0.0
	rates := b.ratesOf(option)
	for d, size := range c.Own {
		cost = max(cost, float64(size)*rates[d])
	}
	return cost
}

// ratesOf are the prices of a unit of each dimension on an option.
func (b *builder) ratesOf(option int) []float64 {
	if b.shelves.rated != &b.reduced[0] {
		b.addRates()
	}
	return b.shelves.rates[option*b.space.Dims : (option+1)*b.space.Dims]
}

func (b *builder) addRates() {
	b.shelves.rated = &b.reduced[0]
	b.shelves.rates = make([]float64, len(b.space.Options)*b.space.Dims)
	for i := range b.reduced.All {
		o := &b.space.Options[i]
		for d, amount := range o.Net {
			if amount > 0 {
				b.shelves.rates[i*b.space.Dims+d] = float64(o.Price) / float64(amount)
			}
		}
	}
}
