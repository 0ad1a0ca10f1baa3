package planner

import (
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
	b     *builder
	shops map[int]*shop // by pool
	// needs are, per class, the keys that its own rules mention, once asked for.
	needs [][]int
	asked []bool
	// daemons are the requests of each set of daemons.
	daemons []model.Resources
}

func newAlternatives(b *builder) *alternatives {
	a := &alternatives{b: b, shops: map[int]*shop{}, needs: make([][]int, len(b.classes)), asked: make([]bool, len(b.classes))}
	axes := b.space.Dims - len(b.space.Drivers)
	for i := range b.space.DaemonSets {
		a.daemons = append(a.daemons, slices.Clone(b.space.DaemonSets[i].Requests[:axes]))
	}
	return a
}

// shop returns the pool of an option.
func (a *alternatives) shop(option int) *shop {
	pool := a.b.space.PoolOf(option)
	p, ok := a.shops[pool.Index]
	if !ok {
		p = newShop(a.b.space, pool)
		a.shops[pool.Index] = p
	}
	return p
}

// used is what the pods of a machine to be bought take together.
func (b *builder) used(pl *Place) []int64 {
	used := make([]int64, b.space.Dims)
	for d := range used {
		used[d] = b.space.Options[pl.Option].Net[d] - pl.Free[d]
	}
	return used
}

// newNode describes a machine: the offerings that hold its pods, the cheapest
// that can be bought first, and the labels that it must have.
func (a *alternatives) newNode(pl *Place) model.NewNode {
	b, s := a.b, a.b.space
	used, p := b.used(pl), a.shop(pl.Option)
	fits := p.fitting(b, pl, used)
	b.ledger.Take(pl.Option, -1)
	open := p.affordable(b.ledger, fits)
	of := p.offer(b, open, -1)
	pl.Option = of.fits[0]
	b.ledger.Take(pl.Option, 1)
	if !a.enough(p, of.fits) {
		of = p.offer(b, fits, pl.Option)
	}
	axes := s.Dims - len(s.Drivers)
	return model.NewNode{
		Pool:         s.Options[pl.Option].Pool,
		Offerings:    of.refs,
		Requirements: a.requirements(pl, of),
		Requests:     model.Resources(used[:axes:axes]),
		Daemons:      a.daemons[s.Options[pl.Option].Daemons],
	}
}

// enough reports whether a pool's minValues are met by the offerings.
func (a *alternatives) enough(p *shop, fits []int) bool {
	for _, m := range a.b.inst.MinValues.Of(p.pool.Index) {
		seen := map[int32]bool{}
		for _, o := range fits {
			if v := p.space.OptionValue(m.Key, o); v >= 0 {
				seen[v] = true
			}
		}
		if len(seen) < m.Count {
			return false
		}
	}
	return true
}

// requirements narrows the pool's: for every label that the instance type does
// not settle and that the pods' rules or topology depend on, the values that
// the offerings have.
func (a *alternatives) requirements(pl *Place, of *offer) model.Requirements {
	s := a.b.space
	needed := feasible.NewSet(len(s.Keys()))
	add := func(keys []int) {
		for _, k := range keys {
			if s.Varies(k) {
				needed.Add(k)
			}
		}
	}
	add(a.b.settled(pl))
	for _, pc := range pl.Pods {
		add(a.mentioned(pc.Class))
		if pl.Open { // not in the domains that are left out
			add(a.b.keysOf(pc.Class, pc.Level))
		}
	}
	if !needed.Any() {
		return nil
	}
	id := make([]byte, 0, 8)
	for k := range needed.All {
		id = append(id, byte(k), byte(k>>8))
	}
	if known, ok := of.requirements[string(id)]; ok {
		return known
	}
	var out model.Requirements
	for k := range needed.All {
		if values := a.values(k, of.fits); len(values) > 0 {
			out = append(out, model.Requirement{Key: s.Keys()[k], Operator: model.In, Values: values})
		}
	}
	of.requirements[string(id)] = out
	return out
}

// values lists the values of a label that the options have, none if one of them
// lacks the label: a requirement would exclude it.
func (a *alternatives) values(key int, fits []int) []string {
	s := a.b.space
	seen := make([]bool, s.Values(key))
	var values []string
	for _, o := range fits {
		v := s.OptionValue(key, o)
		if v < 0 {
			return nil
		}
		if seen[v] {
			continue
		}
		seen[v] = true
		if name, ok := s.ValueName(key, v); ok {
			values = append(values, name)
		}
	}
	slices.Sort(values)
	return values
}

// mentioned lists the keys that a class's own rules on nodes mention.
func (a *alternatives) mentioned(class int) []int {
	if a.asked[class] {
		return a.needs[class]
	}
	var keys []int
	mention := func(rs model.Requirements) {
		for i := range rs {
			keys = append(keys, a.b.space.KeyIndex(rs[i].Key))
		}
	}
	spec := a.b.classes[class].Spec
	mention(spec.NodeRequirements)
	for _, alternatives := range [][]model.Requirements{spec.NodeAlternatives, spec.VolumeAlternatives} {
		for _, rs := range alternatives {
			mention(rs)
		}
	}
	for i := range spec.NodePreferences {
		mention(spec.NodePreferences[i].Requirements)
	}
	a.asked[class], a.needs[class] = true, keys
	return keys
}
