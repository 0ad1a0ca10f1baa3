package planner

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// upstreamTypes is how many instance types a machine may name when the policy
// does not say.
const upstreamTypes = 600

// alternatives finds for each new machine everything that could be bought in
// its stead. Machines with the same choice share their lists.
type alternatives struct {
	b       *builder
	byPrice map[int][]int // options by pool, cheapest first
	shared  map[string][]model.OfferingRef
}

func newAlternatives(b *builder) *alternatives {
	return &alternatives{b: b, byPrice: map[int][]int{}, shared: map[string][]model.OfferingRef{}}
}

// newNode describes a machine: the offerings that hold its pods, the cheapest
// that can be bought first, and the labels that it must have.
func (a *alternatives) newNode(pl *place) model.NewNode {
	b, s := a.b, a.b.space
	used := make([]int64, s.Dims)
	for d := range used {
		used[d] = s.Options[pl.Option].Net[d] - pl.free[d]
	}
	keys := b.settled(pl)
	fits := a.fitting(pl, used, keys)
	b.ledger.Take(pl.Option, -1)
	best := slices.IndexFunc(fits, b.ledger.Admits)
	pl.Option = fits[best]
	b.ledger.Take(pl.Option, 1)
	fits = slices.Insert(slices.Delete(fits, best, best+1), 0, pl.Option)
	fits = a.truncate(a.affordable(fits))
	axes := s.Dims - len(s.Drivers)
	daemons := s.DaemonSets[s.Options[pl.Option].Daemons].Requests
	return model.NewNode{
		Pool:         s.Options[pl.Option].Pool,
		Offerings:    a.refs(fits),
		Requirements: a.requirements(pl, fits, keys),
		Requests:     model.Resources(used[:axes:axes]),
		Daemons:      model.Resources(slices.Clone(daemons[:axes])),
	}
}

// fitting lists the options of the machine's pool that hold its pods, with
// what they ask of labels and with the same settled labels, cheapest first.
func (a *alternatives) fitting(pl *place, used []int64, keys []int) []int {
	b, s := a.b, a.b.space
	set := pl.options.Clone()
	for _, pc := range pl.pods {
		spec := b.classes[pc.class].spec
		for _, alternatives := range [][]model.Requirements{spec.NodeAlternatives, spec.VolumeAlternatives} {
			// Of several alternatives one is fixed, so that the machine's
			// requirements can say it: they have no "or".
			if len(alternatives) > 1 {
				set.And(a.firstMet(alternatives, pl.Option))
			}
		}
	}
	var out []int
	run, fits := -1, false
	for _, o := range a.cheapestFirst(pl.Option) {
		if !set.Has(o) {
			continue
		}
		if option := &s.Options[o]; option.Run != run {
			run, fits = option.Run, feasible.Fits(used, option.Net)
		}
		if fits && b.agree(pl, keys, o) {
			out = append(out, o)
		}
	}
	return out
}

// firstMet is the set of the first alternative that the option meets.
func (a *alternatives) firstMet(alternatives []model.Requirements, option int) feasible.Set {
	for _, rs := range alternatives {
		if set := a.b.space.Matching(rs); set != nil && set.Has(option) {
			return set
		}
	}
	return feasible.Full(len(a.b.space.Options))
}

func (a *alternatives) cheapestFirst(option int) []int {
	pool := a.b.space.PoolOf(option)
	if list, ok := a.byPrice[pool.Index]; ok {
		return list
	}
	s := a.b.space
	list := make([]int, 0, pool.End-pool.First)
	for o := pool.First; o < pool.End; o++ {
		list = append(list, o)
	}
	name := func(o int) string { t, _ := s.Offering(o); return t.Name }
	slices.SortStableFunc(list, func(x, y int) int {
		return cmp.Or(cmp.Compare(s.Options[x].Price, s.Options[y].Price), cmp.Compare(name(x), name(y)), cmp.Compare(x, y))
	})
	a.byPrice[pool.Index] = list
	return list
}

// affordable keeps the alternatives that what is left of limits, quotas and
// reservations admits in place of the first, unless the pool's minValues would
// then not be met.
func (a *alternatives) affordable(fits []int) []int {
	b := a.b
	b.ledger.Take(fits[0], -1)
	var out []int
	for _, o := range fits {
		if b.ledger.Admits(o) {
			out = append(out, o)
		}
	}
	b.ledger.Take(fits[0], 1)
	for _, m := range b.minimums[b.space.Options[fits[0]].Pool] {
		seen := map[int32]bool{}
		for _, o := range out {
			if v := b.space.OptionValue(m.key, o); v >= 0 {
				seen[v] = true
			}
		}
		if len(seen) < m.count {
			return fits
		}
	}
	return out
}

// truncate keeps the offerings of at most as many instance types as allowed,
// the cheapest, but first those without which minValues would not be met.
func (a *alternatives) truncate(fits []int) []int {
	s := a.b.space
	limit := s.Problem.Policy.MaxInstanceTypes
	if limit <= 0 {
		limit = upstreamTypes
	}
	kept := map[int]bool{}
	keep := func(o int) {
		if len(kept) < limit {
			kept[s.Options[o].Type] = true
		}
	}
	keep(fits[0])
	for _, m := range a.b.minimums[s.Options[fits[0]].Pool] {
		seen := map[int32]bool{}
		for _, o := range fits {
			if v := s.OptionValue(m.key, o); v >= 0 && !seen[v] && len(seen) < m.count {
				seen[v] = true
				keep(o)
			}
		}
	}
	for _, o := range fits {
		keep(o)
	}
	return slices.DeleteFunc(fits, func(o int) bool { return !kept[s.Options[o].Type] })
}

func (a *alternatives) refs(fits []int) []model.OfferingRef {
	id := make([]byte, 0, 2*len(fits))
	for _, o := range fits {
		id = binary.AppendUvarint(id, uint64(o))
	}
	if refs, ok := a.shared[string(id)]; ok {
		return refs
	}
	refs := make([]model.OfferingRef, len(fits))
	for i, o := range fits {
		option := &a.b.space.Options[o]
		refs[i] = model.OfferingRef{InstanceType: option.Type, Offering: option.Offering, Price: option.Price}
	}
	a.shared[string(id)] = refs
	return refs
}

// requirements narrows the pool's: for every label that the instance type does
// not settle and that the pods' rules or topology depend on, the values that
// the offerings have.
func (a *alternatives) requirements(pl *place, fits []int, keys []int) model.Requirements {
	s := a.b.space
	needed := make([]bool, len(s.Keys()))
	for _, k := range keys {
		needed[k] = true
	}
	need := func(rs model.Requirements) {
		for i := range rs {
			needed[s.KeyIndex(rs[i].Key)] = true
		}
	}
	for _, pc := range pl.pods {
		spec := a.b.classes[pc.class].spec
		need(spec.NodeRequirements)
		for _, rs := range slices.Concat(spec.NodeAlternatives, spec.VolumeAlternatives) {
			need(rs)
		}
		for i := range spec.NodePreferences {
			need(spec.NodePreferences[i].Requirements)
		}
	}
	var out model.Requirements
	for k, key := range s.Keys() {
		if !needed[k] || !s.Varies(k) {
			continue
		}
		var values []string
		for _, o := range fits {
			if v, ok := s.ValueName(k, s.OptionValue(k, o)); ok && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		slices.Sort(values)
		if len(values) > 0 {
			out = append(out, model.Requirement{Key: key, Operator: model.In, Values: values})
		}
	}
	return out
}
