package planner

import (
	"cmp"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// shop is what one pool can buy, indexed so that questions about machines are
// answered for all its options at once. Its sets hold only those words of the
// space's sets in which the pool has options, the first of which is word from.
type shop struct {
	space    *feasible.Space
	pool     *feasible.Pool
	from, to int
	// order lists the options, cheapest first.
	order []int
	// levels answer, per dimension, which options have at least so much of it.
	levels []*feasible.Levels
	// alike are the options with one value of a label.
	alike map[keyValue]feasible.Set
	// offers are the answers so far, by a hash of their sets.
	offers map[uint64][]*offer
}

type keyValue struct {
	key   int
	value int32
}

func newShop(s *feasible.Space, pool *feasible.Pool) *shop {
	p := &shop{
		space: s, pool: pool, from: pool.First / 64, to: (pool.End + 63) / 64,
		levels: make([]*feasible.Levels, s.Dims), alike: map[keyValue]feasible.Set{}, offers: map[uint64][]*offer{},
	}
	p.order = cheapestFirst(s, pool)
	return p
}

// cheapestFirst lists a pool's options by price, those of one price by the name of
// their type and then as the catalogue has them.
func cheapestFirst(s *feasible.Space, pool *feasible.Pool) []int {
	// Sorting is a good part of a small plan: options of one type and price, which
	// lie close together, are sorted as one.
	type lot struct {
		price       model.Money
		name        string
		first, next int
	}
	var lots []lot
	after := make([]int, pool.End-pool.First) // by option, the next one of the lot
	begin := 0                                // of the type's lots
	for o := pool.First; o < pool.End; o++ {
		option := &s.Options[o]
		if o > pool.First && s.Options[o-1].Type != option.Type {
			begin = len(lots)
		}
		at := begin
		for at < len(lots) && lots[at].price != option.Price {
			at++
		}
		if at == len(lots) {
			t, _ := s.Offering(o)
			lots = append(lots, lot{option.Price, t.Name, o, o})
			continue
		}
		after[lots[at].next-pool.First] = o
		lots[at].next = o
	}
	slices.SortFunc(lots, func(x, y lot) int {
		if x.price != y.price {
			return cmp.Compare(x.price, y.price)
		}
		return cmp.Or(cmp.Compare(x.name, y.name), x.first-y.first)
	})
	order := make([]int, 0, len(after))
	for _, w := range lots {
		for o := w.first; ; o = after[o-pool.First] {
			order = append(order, o)
			if o == w.next {
				break
			}
		}
	}
	return order
}

// words cuts the shop's part out of one of the space's sets.
func (p *shop) words(set feasible.Set) feasible.Set { return set[p.from:p.to] }

// has reports whether an option is in one of the shop's sets.
func (p *shop) has(set feasible.Set, option int) bool { return set.Has(option - 64*p.from) }

func (p *shop) empty() feasible.Set { return make(feasible.Set, p.to-p.from) }

// holding keeps the options that have room for all that is used.
func (p *shop) holding(set feasible.Set, used []int64) {
	for d, v := range used {
		if p.levels[d] == nil {
			p.levels[d] = p.space.NewLevels(d, p.pool.First, p.pool.End)
		}
		p.levels[d].Keep(set, v)
	}
}

// valued are the options with a value of a label.
func (p *shop) valued(key int, value int32) feasible.Set {
	set, ok := p.alike[keyValue{key, value}]
	if !ok {
		set = p.empty()
		for o := p.pool.First; o < p.pool.End; o++ {
			if p.space.OptionValue(key, o) == value {
				set.Add(o - 64*p.from)
			}
		}
		p.alike[keyValue{key, value}] = set
	}
	return set
}

// fitting are the options that hold what is used on a machine, with what its
// pods ask of labels and with the same settled labels.
func (p *shop) fitting(b *builder, pl *Place, used []int64) feasible.Set {
	set := p.words(pl.Options).Clone()
	p.holding(set, used)
	for _, k := range b.settled(pl) {
		set.And(p.valued(k, p.space.OptionValue(k, pl.Option)))
	}
	for _, pc := range pl.Pods {
		b.order.KeepSeen(pc.Class, pl.Place, set, p.from)
		b.inst.MinValues.FixAlternatives(set, pc.Class, pl.Option, p.words)
	}
	return set
}

// affordable are the members of a set that what is left of limits, quotas and
// reservations admits.
func (p *shop) affordable(ledger *feasible.Ledger, set feasible.Set) feasible.Set {
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

// offer is a choice of offerings for machines, shared by all that have it.
type offer struct {
	// set and first are what was asked for.
	set   feasible.Set
	first int
	fits  []int
	refs  []model.OfferingRef
	// requirements are what a machine must say to get one of these offerings, by
	// the labels that matter to its pods.
	requirements map[string]model.Requirements
}

// offer lists a set's options, cheapest first, at most as many instance types as
// the policy allows. With first, that option leads the list.
func (p *shop) offer(b *builder, set feasible.Set, first int) *offer {
	hash := set.Hash() + uint64(first)
	for _, known := range p.offers[hash] {
		if known.first == first && slices.Equal(known.set, set) {
			return known
		}
	}
	of := &offer{set: set, first: first, requirements: map[string]model.Requirements{}, fits: make([]int, 0, set.Count())}
	if first >= 0 {
		of.fits = append(of.fits, first)
	}
	for _, o := range p.order {
		if p.has(set, o) && o != first {
			of.fits = append(of.fits, o)
		}
	}
	if b.inst.MinValues.Choices() {
		of.fits = p.once(of.fits)
	}
	of.fits = p.truncate(b, of.fits)
	of.refs = make([]model.OfferingRef, len(of.fits))
	for i, o := range of.fits {
		option := &p.space.Options[o]
		of.refs[i] = model.OfferingRef{InstanceType: option.Type, Offering: option.Offering, Price: option.Price}
	}
	p.offers[hash] = append(p.offers[hash], of)
	return of
}

// once keeps of the options that are the same offering with another label for the
// buyer to pick the first.
func (p *shop) once(fits []int) []int {
	seen := map[[2]int]bool{}
	return slices.DeleteFunc(fits, func(o int) bool {
		id := [2]int{p.space.Options[o].Type, p.space.Options[o].Offering}
		again := seen[id]
		seen[id] = true
		return again
	})
}

// truncate keeps the offerings of at most as many instance types as allowed,
// the cheapest, but first those without which minValues would not be met.
func (p *shop) truncate(b *builder, fits []int) []int {
	s := p.space
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
	keep(fits[0])
	for _, m := range b.inst.MinValues.Of(p.pool.Index) {
		seen := map[int32]bool{}
		for _, o := range fits {
			if v := s.OptionValue(m.Key, o); v >= 0 && !seen[v] && len(seen) < m.Count {
				seen[v] = true
				keep(o)
			}
		}
	}
	for _, o := range fits {
		keep(o)
	}
	return slices.DeleteFunc(fits, func(o int) bool { return !kept[s.Options[o].Type-first] })
}

// settled lists the keys in which every offering of a machine must have the
// same value: those that its pods' topology looks at, and those whose value the
// buyer picks and that somebody on the machine reads.
func (b *builder) settled(pl *Place) []int {
	keys := b.inst.MinValues.ChosenFor(pl.Pods)
	for _, pc := range pl.Pods {
		list := b.keysOf(pc.Class, pc.Level)
		if pl.Open {
			list = b.tiedOf(pc.Class, pc.Level)
		}
		for _, k := range list {
			if !slices.Contains(keys, k) {
				keys = append(slices.Clip(keys), k)
			}
		}
	}
	return keys
}

// classKeys are the topology keys of a class at a level, once they are known.
type classKeys struct {
	known bool
	keys  []int
}

// keysOf lists the label keys whose domains matter for a class at a level (see
// [topology.Order.Keys]). Callers do not change the list.
func (b *builder) keysOf(class, level int) []int {
	if b.keys == nil {
		b.tied = nil
		b.keys = make([][]classKeys, len(b.classes))
		levels := 0
		for i := range b.classes {
			levels += len(b.classes[i].Levels)
		}
		all := make([]classKeys, levels)
		for i := range b.classes {
			n := len(b.classes[i].Levels)
			b.keys[i], all = all[:n:n], all[n:]
		}
	}
	k := &b.keys[class][level]
	if !k.known {
		*k = classKeys{known: true, keys: b.order.Keys(b.classes[class].Levels[level].Rules)}
	}
	return k.keys
}

// keepAgreeing keeps of a set the options that have the planned one's settled labels
// and count to the same spreads.
func (b *builder) keepAgreeing(pl *Place, keys []int, set feasible.Set) {
	planned := set.Has(pl.Option)
	for _, k := range keys {
		here := b.inst.Topology.Domain(k, pl.Place)
		for o := range set.All {
			if b.inst.Topology.Domain(k, topology.Place{ID: pl.ID, Node: -1, Option: o}) != here {
				set.Remove(o)
			}
		}
	}
	for _, pc := range pl.Pods {
		b.order.KeepSeen(pc.Class, pl.Place, set, 0)
	}
	if planned {
		set.Add(pl.Option)
	}
}
