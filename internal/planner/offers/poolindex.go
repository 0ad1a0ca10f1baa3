package offers

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/instance"
	"github.com/nodeautoprovision/nap/internal/planner/placement"
)

// upstreamTypes is how many instance types a NodeClaim may name when the policy does
// not say: Karpenter's limit.
const upstreamTypes = 600

// poolIndex holds what one pool can buy, indexed so that questions about nodes are
// answered for all its options at once. Its sets hold only those words of the space's
// sets in which the pool has options.
type poolIndex struct {
	in   *instance.Instance
	pool *feasible.Pool
	// from and to are the first word of the space's sets and the one after the last.
	from, to int
	// order lists the options, cheapest first.
	order []int
	// levels answer, by dimension, which options have at least so much of it. They are
	// built when they are asked for.
	levels []*feasible.Levels
	// alike are the options with one value of a label, built when asked for.
	alike map[keyValue]bitset.Set
	// choices are the answers so far, by a hash of their sets.
	choices map[uint64][]*choice
}

// keyValue is a label, key and value by their numbers in the space.
type keyValue struct {
	key   int
	value int32
}

// priced is the key of a pool's options by price, by the pool's index in the problem.
type priced int

// newPoolIndex sorts the options of a pool and indexes nothing else yet.
// Precondition: the pool has options.
func newPoolIndex(in *instance.Instance, pool *feasible.Pool) *poolIndex {
	order := feasible.Kept(in.Space, priced(pool.Index), func() []int { return cheapestFirst(in.Space, pool) })
	return &poolIndex{
		in: in, pool: pool, from: pool.First / 64, to: (pool.End + 63) / 64, order: order,
		levels: make([]*feasible.Levels, in.Space.Dims.Count), alike: map[keyValue]bitset.Set{}, choices: map[uint64][]*choice{},
	}
}

// cheapestFirst lists a pool's options by price, those of one price by the name of
// their instance type and then as the catalogue has them.
func cheapestFirst(s *feasible.Space, pool *feasible.Pool) []int {
	// Sorting is a good part of a small plan: options of one type and price, which
	// lie close together, are sorted as one.
	type group struct {
		price       model.Money
		first, last int32
	}
	var groups []group
	after := make([]int, pool.End-pool.First) // by option, the next one of the group
	begin := 0                                // of the type's groups
	for o := pool.First; o < pool.End; o++ {
		option := &s.Options[o]
		if o > pool.First && s.Options[o-1].Type != option.Type {
			begin = len(groups)
		}
		at := begin
		for at < len(groups) && groups[at].price != option.Price {
			at++
		}
		if at == len(groups) {
			groups = append(groups, group{option.Price, int32(o), int32(o)})
			continue
		}
		after[int(groups[at].last)-pool.First] = o
		groups[at].last = int32(o)
	}
	name := func(x group) string { t, _ := s.Offering(int(x.first)); return t.Name }
	slices.SortFunc(groups, func(x, y group) int {
		if x.price != y.price {
			return cmp.Compare(x.price, y.price)
		}
		return cmp.Or(cmp.Compare(name(x), name(y)), int(x.first-y.first))
	})
	order := make([]int, 0, len(after))
	for _, g := range groups {
		for o := int(g.first); ; o = after[o-pool.First] {
			order = append(order, o)
			if o == int(g.last) {
				break
			}
		}
	}
	return order
}

// words cuts the pool's part out of one of the space's sets.
func (p *poolIndex) words(set bitset.Set) bitset.Set { return set[p.from:p.to] }

// has reports whether an option is in one of the pool's sets, which number options from
// 64*from on.
func (p *poolIndex) has(set bitset.Set, option int) bool { return set.Has(option - 64*p.from) }

// keepHolding keeps the options that have room for all that is used.
func (p *poolIndex) keepHolding(set bitset.Set, used []int64) {
	for d, v := range used {
		if p.levels[d] == nil {
			p.levels[d] = p.in.Space.Capacity.NewLevels(d, p.pool.First, p.pool.End)
		}
		p.levels[d].Keep(set, v)
	}
}

// valued are the options with a value of a label. Callers do not change the set.
func (p *poolIndex) valued(key int, value int32) bitset.Set {
	set, ok := p.alike[keyValue{key, value}]
	if !ok {
		set = make(bitset.Set, p.to-p.from)
		for o := p.pool.First; o < p.pool.End; o++ {
			if p.in.Space.Labels.OptionValue(key, o) == value {
				set.Add(o - 64*p.from)
			}
		}
		p.alike[keyValue{key, value}] = set
	}
	return set
}

// fitting are the options that hold what is used on a node, with what its pods ask of
// labels and with the same settled labels: topology has counted its pods in those domains.
// The node's own option is always among them. The caller owns the set.
func (p *poolIndex) fitting(s *placement.State, pl *placement.Place, used []int64) bitset.Set {
	set := p.words(pl.Options).Clone()
	p.keepHolding(set, used)
	for _, k := range s.Domains.Settled(pl) {
		set.And(p.valued(k, p.in.Space.Labels.OptionValue(k, pl.Option)))
	}
	for _, pc := range pl.Pods {
		s.Domains.Order.KeepSeen(pc.Class, pl.Place, set, p.from)
		p.in.MinValues.FixAlternatives(set, pc.Class, pl.Option, p.words)
	}
	return set
}

// affordable are the members of a set that what is left of limits, quotas and
// reservations admits. It may be the set itself.
func (p *poolIndex) affordable(ledger *feasible.Ledger, set bitset.Set) bitset.Set {
	if !ledger.Tight() {
		return set
	}
	out := set.Clone()
	for o := range set.All {
		if !ledger.Admits(o + 64*p.from) {
			out.Remove(o)
		}
	}
	return out
}

// choice is a list of offerings for nodes, shared by all nodes that have it. Nothing
// changes it but for requirements, which grow.
type choice struct {
	// set and first are what was asked for.
	set   bitset.Set
	first int
	// options are those to choose from, cheapest first, and refs the offerings
	// behind them.
	options []int
	refs    []model.OfferingRef
	// requirements are what a NodeClaim must say to get one of these offerings, by
	// the labels that matter to its pods.
	requirements map[string]model.Requirements
}

// choose lists a set's options, cheapest first, of at most as many instance types as
// the policy allows. With first, which is -1 for none, that option leads the list. The
// list is not empty if the set is not.
func (p *poolIndex) choose(set bitset.Set, first int) *choice {
	hash := set.Hash() + uint64(first)
	for _, known := range p.choices[hash] {
		if known.first == first && slices.Equal(known.set, set) {
			return known
		}
	}
	l := p.list(set, first)
	c := &choice{set: set, first: first, options: l.options, refs: l.refs, requirements: map[string]model.Requirements{}}
	p.choices[hash] = append(p.choices[hash], c)
	return c
}

// lists are the options to choose from and the offerings behind them. They do not change: parts of a
// problem that are alike share them.
type lists struct {
	options []int
	refs    []model.OfferingRef
}

// listKey is what lists depend on beside what is the same for all spaces that share their options.
type listKey struct {
	pool, first, types int
	// set are the words of the set.
	set string
}

// list makes the lists of [poolIndex.choose], unless that was done before.
func (p *poolIndex) list(set bitset.Set, first int) *lists {
	words := make([]byte, 0, 8*len(set))
	for _, w := range set {
		words = binary.LittleEndian.AppendUint64(words, w)
	}
	key := listKey{p.pool.Index, first, p.in.Space.Problem.Policy.MaxInstanceTypes, string(words)}
	return feasible.Kept(p.in.Space, key, func() *lists {
		options := make([]int, 0, set.Count())
		if first >= 0 {
			options = append(options, first)
		}
		for _, o := range p.order {
			if p.has(set, o) && o != first {
				options = append(options, o)
			}
		}
		if p.in.MinValues.Choices() {
			options = p.once(options)
		}
		l := &lists{options: p.truncate(options)}
		l.refs = make([]model.OfferingRef, len(l.options))
		for i, o := range l.options {
			option := &p.in.Space.Options[o]
			l.refs[i] = model.OfferingRef{InstanceType: int(option.Type), Offering: int(option.Offering), Price: option.Price}
		}
		return l
	})
}

// once keeps the first of the options that are the same offering with another value of
// a label that the buyer chooses: an offering is bought by its type, zone and capacity
// type, and the NodeClaim's requirements leave the value open.
func (p *poolIndex) once(options []int) []int {
	numbers := p.in.Space.NumberOfferings(p.pool)
	seen := bitset.New(numbers.Count())
	return slices.DeleteFunc(options, func(o int) bool {
		n := numbers.Of(o)
		again := seen.Has(n)
		seen.Add(n)
		return again
	})
}

// truncate keeps the offerings of at most as many instance types as allowed, the
// cheapest, but first those without which minValues would not be met. The first option
// always stays, since the node is planned as that.
// Precondition: there are options, cheapest first.
func (p *poolIndex) truncate(options []int) []int {
	s := p.in.Space
	limit := s.Problem.Policy.MaxInstanceTypes
	if limit <= 0 {
		limit = upstreamTypes
	}
	first := s.Options[p.pool.First].Type
	kept := make([]bool, s.Options[p.pool.End-1].Type+1-first)
	left := limit
	keep := func(o int) {
		if t := s.Options[o].Type - first; left > 0 && !kept[t] {
			kept[t] = true
			left--
		}
	}
	keep(options[0])
	for _, m := range p.in.MinValues.Of(p.pool.Index) {
		seen := map[int32]bool{}
		for _, o := range options {
			if v := s.Labels.OptionValue(m.Key, o); v >= 0 && !seen[v] && len(seen) < m.Count {
				seen[v] = true
				keep(o)
			}
		}
	}
	for _, o := range options {
		keep(o)
	}
	return slices.DeleteFunc(options, func(o int) bool { return !kept[s.Options[o].Type-first] })
}

// enough reports whether the options meet the pool's minValues: for each label so many
// different values among them. Options without the label count for none.
func (p *poolIndex) enough(options []int) bool {
	for _, m := range p.in.MinValues.Of(p.pool.Index) {
		seen := map[int32]bool{}
		for _, o := range options {
			if v := p.in.Space.Labels.OptionValue(m.Key, o); v >= 0 {
				seen[v] = true
			}
		}
		if len(seen) < m.Count {
			return false
		}
	}
	return true
}
