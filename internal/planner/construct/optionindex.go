package construct

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/meter"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// OptionIndex answers which options of which domains are worth buying for a class. It
// remembers how sets of options are divided by topology and sorted by cost, since many
// classes ask for the same. Sets are told apart by their address: classes share equal
// ones (see [instance.Level]).
type OptionIndex struct {
	in *instance.Instance
	// shut are options that may not be bought. Nil means none.
	shut bitset.Set
	// worth are the options worth buying; setWorth replaces them.
	worth bitset.Set
	// rates are the prices of a unit, by option and dimension, of the options worth
	// buying. They are nil until they are asked for.
	rates []float64
	// known is what was worked out so far. Forks share it.
	known *indexCache
	// work counts what the constructor does; it may be nil. Forks share it.
	work *meter.Work
}

type indexCache struct {
	// cells are partitions of all options, by keys.
	cells map[string][]bitset.Set
	// tiers are parts of sets by pool weight; open are sets without what is shut.
	tiers map[tieredSet]bitset.Set
	open  map[*uint64]bitset.Set
	// parts are sets divided by a partition.
	parts map[dividedSet][]part
	// lists are cost-sorted lists, by cell, set and options worth buying.
	lists map[cellSet]*costList
	// rates are the prices of a unit, by the options worth buying.
	rates map[*uint64][]float64
	// full are the answers of [instance.MinValues.Filled].
	full map[staticTier]bitset.Set
}

// staticTier is a class's static set by number, and a tier.
type staticTier struct{ static, tier int }

type tieredSet struct {
	set  *uint64
	tier int
}

type dividedSet struct {
	cells *bitset.Set
	set   *uint64
}

type cellSet struct{ cell, set, worth *uint64 }

// costList is what is worth buying of a cell for pods of any size: the cheapest first,
// and the Pareto-efficient ones, of which one is the cheapest for a pod of any size.
type costList struct{ byPrice, efficient []int }

// part is the part of a set of options that is in one cell of a partition.
type part struct {
	options bitset.Set
	// cell is nil unless other classes share the partition.
	cell bitset.Set
	// first is the first of the options.
	first int
	// list is what is worth buying of the part, once asked for, and worth the address
	// of the options that were worth buying then. Its efficient options are nil until
	// they are asked for.
	list  costList
	worth *uint64
}

// pods say how many pods a node may hold when costs are compared.
type pods struct {
	// most is how many pods one node may hold whatever its size.
	most int
	// counted says that whole pods are counted even if most is no limit.
	counted bool
}

func newOptionIndex(in *instance.Instance, shut bitset.Set) *OptionIndex {
	return &OptionIndex{in: in, shut: shut, worth: in.Menu, known: &indexCache{
		cells: map[string][]bitset.Set{}, tiers: map[tieredSet]bitset.Set{}, open: map[*uint64]bitset.Set{},
		parts: map[dividedSet][]part{}, lists: map[cellSet]*costList{}, rates: map[*uint64][]float64{}, full: map[staticTier]bitset.Set{},
	}}
}

// fork is an index of its own for the same goroutine.
func (x *OptionIndex) fork() *OptionIndex {
	f := *x
	return &f
}

// Worth are the options worth buying. Callers do not change the set.
func (x *OptionIndex) Worth() bitset.Set { return x.worth }

func (x *OptionIndex) setWorth(worth bitset.Set) { x.worth, x.rates = worth, nil }

// inTier are the options of a class's set whose pools have the tier.
func (x *OptionIndex) inTier(set bitset.Set, tier int) bitset.Set {
	if x.in.Space.Tiers == 1 || len(set) == 0 {
		return set
	}
	id := tieredSet{&set[0], tier}
	own, ok := x.known.tiers[id]
	if !ok {
		own = set.Clone()
		own.And(x.in.Space.Tier(tier))
		x.known.tiers[id] = own
	}
	return own
}

// allowed are the options of a set that are not shut.
func (x *OptionIndex) allowed(set bitset.Set) bitset.Set {
	if x.shut == nil || len(set) == 0 {
		return set
	}
	open, ok := x.known.open[&set[0]]
	if !ok {
		open = set.Clone()
		open.AndNot(x.shut)
		x.known.open[&set[0]] = open
	}
	return open
}

// filled remembers [instance.MinValues.Filled].
func (x *OptionIndex) filled(static, tier int) bitset.Set {
	id := staticTier{static, tier}
	set, ok := x.known.full[id]
	if !ok {
		set = x.in.MinValues.Filled(static, tier)
		x.known.full[id] = set
	}
	return set
}

// divide divides a set that is not empty by the cells of the class's partition.
func (x *OptionIndex) divide(d *placement.Domains, c *instance.Class, set bitset.Set, keys []int) []part {
	cells, shared := x.partition(d, c, keys)
	if len(cells) == 0 {
		return nil
	}
	id := dividedSet{&cells[0], &set[0]}
	if known, ok := x.known.parts[id]; ok && shared {
		return known
	}
	x.work.Spend(int64(len(cells)*len(set)) * wordSteps)
	var out []part
	for _, cell := range cells {
		own := cell.Clone()
		own.And(set)
		if first := own.Next(0); first >= 0 {
			p := part{options: own, first: first}
			if shared {
				p.cell = cell
			}
			out = append(out, p)
		}
	}
	if shared {
		x.known.parts[id] = out
	}
	return out
}

// partition divides all options into those that topology cannot tell apart for the
// class. Classes with the same keys share it, which the second result tells, unless
// filters of counters make the class special.
func (x *OptionIndex) partition(d *placement.Domains, c *instance.Class, keys []int) ([]bitset.Set, bool) {
	special := d.Order.Filtered(c.Index)
	id := make([]byte, 0, 2*len(keys))
	for _, k := range keys {
		id = binary.AppendUvarint(id, uint64(k))
	}
	if cells, ok := x.known.cells[string(id)]; ok && !special {
		return cells, true
	}
	x.work.Spend(int64(len(x.in.Space.Options)) * optionSteps)
	if len(keys) == 0 && !special {
		x.known.cells[string(id)] = []bitset.Set{bitset.Full(len(x.in.Space.Options))}
		return x.known.cells[string(id)], true
	}
	var cells []bitset.Set
	index := map[string]int{}
	for o := range x.in.Space.Options {
		domains := d.ID(c.Index, keys, topology.Place{ID: -1, Node: -1, Option: o})
		i, ok := index[string(domains)]
		if !ok {
			i = len(cells)
			index[string(domains)] = i
			cells = append(cells, bitset.New(len(x.in.Space.Options)))
		}
		cells[i].Add(o)
	}
	if !special {
		x.known.cells[string(id)] = cells
	}
	return cells, !special
}

// cheapest is what a pod of the class costs on a part where it costs least, to compare
// domains. The part is of the class's options; the whole set is that of the class
// whatever its size. What has run out does not count.
func (x *OptionIndex) cheapest(c *instance.Class, p *part, whole bitset.Set, n pods, ledger *feasible.Ledger) float64 {
	counted, tight := n.counted || n.most < topology.NoLimit, ledger.Tight()
	if p.cell != nil && !tight {
		if a := x.costList(p.cell, whole); counted {
			return x.leastFor(c, a.byPrice, p.options, n.most)
		} else if least, held := x.leastOf(c, a.efficient, p.options); held {
			return least
		}
	}
	if p.worth != &x.worth[0] {
		p.list, p.worth = costList{byPrice: x.byPrice(p.options)}, &x.worth[0]
	}
	switch {
	case tight:
		return x.leastAdmitted(c, p.list.byPrice, counted, n.most, ledger)
	case counted:
		return x.leastFor(c, p.list.byPrice, p.options, n.most)
	}
	if p.list.efficient == nil {
		p.list.efficient = x.efficient(p.list.byPrice)
	}
	least, _ := x.leastOf(c, p.list.efficient, p.options)
	return least
}

// costList is the list of a cell and a set: where the best option for a pod holds it,
// no other option has to be looked at.
func (x *OptionIndex) costList(cell, set bitset.Set) *costList {
	id := cellSet{&cell[0], &set[0], &x.worth[0]}
	a, ok := x.known.lists[id]
	if !ok {
		both := cell.Clone()
		both.And(set)
		worth := x.byPrice(both)
		a = &costList{worth, x.efficient(worth)}
		x.known.lists[id] = a
	}
	return a
}

// byPrice are the options of a set that are worth buying, the cheapest first.
func (x *OptionIndex) byPrice(set bitset.Set) []int {
	both := set.Clone()
	both.And(x.worth)
	list := slices.AppendSeq(make([]int, 0, both.Count()), both.All)
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(x.in.Space.Options[a].Price, x.in.Space.Options[b].Price)
	})
	return list
}

// efficient are those of the options, the cheapest first, that no other one beats in
// the price of every dimension's unit. The last ones, which are mostly the largest of
// their family, are looked at first: they often beat the rest.
func (x *OptionIndex) efficient(worth []int) []int {
	var out []int
	for _, o := range slices.Backward(worth) {
		mine := x.ratesOf(o)
		if slices.ContainsFunc(out, func(k int) bool { return beats(x.ratesOf(k), mine) }) {
			continue
		}
		out = slices.DeleteFunc(out, func(k int) bool { return beats(mine, x.ratesOf(k)) })
		out = append(out, o)
	}
	return out
}

// beats reports whether no rate of a exceeds that of b.
func beats(a, b []float64) bool {
	for d, v := range a {
		if v > b[d] {
			return false
		}
	}
	return true
}

// leastFor is what a pod of the class costs on those of the listed options in the set,
// the cheapest first, where so many share a node at most.
func (x *OptionIndex) leastFor(c *instance.Class, list []int, set bitset.Set, most int) float64 {
	least := math.Inf(1)
	for _, o := range list {
		if float64(x.in.Space.Options[o].Price)/float64(max(1, most)) >= least {
			break
		}
		if set.Has(o) {
			least = min(least, x.countedCost(c, o, most))
		}
	}
	return least
}

// leastAdmitted is the same for options of which some have run out.
func (x *OptionIndex) leastAdmitted(c *instance.Class, list []int, counted bool, most int, ledger *feasible.Ledger) float64 {
	least := math.Inf(1)
	for _, o := range list {
		switch {
		case !ledger.Admits(o):
		case counted:
			least = min(least, x.countedCost(c, o, most))
		default:
			least = min(least, x.fluidCost(c, o))
		}
	}
	return least
}

// leastOf is what a pod of the class costs on those of the listed options where it
// costs least, and whether one of these is in the set.
func (x *OptionIndex) leastOf(c *instance.Class, list []int, set bitset.Set) (least float64, held bool) {
	least = math.Inf(1)
	for _, o := range list {
		cost := x.fluidCost(c, o)
		if cost < least {
			least, held = cost, false
		}
		held = held || cost == least && set.Has(o)
	}
	return least, held
}

// countedCost is the share of the option's price that one pod pays if the node holds
// as many of them as it can, but no more than most.
func (x *OptionIndex) countedCost(c *instance.Class, option, most int) float64 {
	return float64(x.in.Space.Options[option].Price) / float64(max(1, feasible.CountFitting(c.Own, x.in.Space.Net(option), int64(most))))
}

// fluidCost is the share of the option's price that one pod pays if the node is full of
// such pods and pods could be divided. It is valid for options worth buying.
func (x *OptionIndex) fluidCost(c *instance.Class, option int) float64 {
	cost := 0.0
	rates := x.ratesOf(option)
	for d, size := range c.Own {
		cost = max(cost, float64(size)*rates[d])
	}
	return cost
}

// ratesOf are the prices of a unit of each dimension on an option worth buying.
func (x *OptionIndex) ratesOf(option int) []float64 {
	dims := x.in.Space.Dims.Count
	if x.rates == nil {
		x.rates = x.known.rates[&x.worth[0]]
	}
	if x.rates == nil {
		x.rates = unitPrices(x.in.Space, x.worth)
		x.known.rates[&x.worth[0]] = x.rates
	}
	return x.rates[option*dims : (option+1)*dims]
}

// unitPrices are the prices of a unit by option and dimension, for the options of a set
// alone.
func unitPrices(s *feasible.Space, set bitset.Set) []float64 {
	rates := make([]float64, len(s.Options)*s.Dims.Count)
	for i := range set.All {
		price := float64(s.Options[i].Price)
		for d, amount := range s.Net(i) {
			if amount > 0 {
				rates[i*s.Dims.Count+d] = price / float64(amount)
			}
		}
	}
	return rates
}
