package planner

import (
	"encoding/binary"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/explain"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
	"github.com/nodeautoprovision/nap/internal/planner/topology"
)

// minimum is a pool's demand that a machine's offerings keep at least so many
// different values of a label.
type minimum struct {
	key, count int
}

// minimums lists the pools' minValues by pool index; none when the policy gives
// them up.
func minimums(s *feasible.Space) map[int][]minimum {
	out := map[int][]minimum{}
	if s.Problem.Policy.RelaxMinValues {
		return out
	}
	for _, pool := range s.Pools {
		for _, r := range s.Problem.Pools[pool.Index].Requirements {
			if r.MinValues > 0 {
				out[pool.Index] = append(out[pool.Index], minimum{s.KeyIndex(r.Key), r.MinValues})
			}
		}
	}
	return out
}

// spareKeys reports whether a pool wants machines to stay open between offerings,
// so that no more of them than needed should be tied to one domain.
func (b *builder) spareKeys() bool { return len(b.minimums) > 0 || b.variant.plain }

// varied reports whether the options of the set that hold the load keep enough
// different values for their pool.
func (b *builder) varied(pool int, options feasible.Set, load []int64) bool {
	return b.scant(pool, options, load) == nil
}

// scant is the first label of which the options keep too few values, or nil.
func (b *builder) scant(pool int, options feasible.Set, load []int64) *explain.Scant {
	for _, m := range b.minimums[pool] {
		seen := map[int32]bool{}
		for o := range options.All {
			if v := b.space.OptionValue(m.key, o); v >= 0 && !seen[v] && feasible.Fits(load, b.space.Options[o].Net) {
				seen[v] = true
				if len(seen) >= m.count {
					break
				}
			}
		}
		if len(seen) < m.count {
			return &explain.Scant{Key: b.space.Keys()[m.key], Have: len(seen), Want: m.count}
		}
	}
	return nil
}

// fixAlternatives keeps of a set what meets the first of a class's alternatives
// that the planned option meets. Of several alternatives one is fixed, so that the
// machine's requirements can say it: they have no "or". Words cuts the part out
// that the set has of one of all options.
func (b *builder) fixAlternatives(set feasible.Set, class, option int, words func(feasible.Set) feasible.Set) {
	spec := b.classes[class].spec
	for _, alternatives := range [2][]model.Requirements{spec.NodeAlternatives, spec.VolumeAlternatives} {
		if len(alternatives) < 2 {
			continue
		}
		for _, rs := range alternatives {
			if met := b.space.Matching(rs); met != nil && met.Has(option) {
				set.And(words(met))
				break
			}
		}
	}
}

// fixed is a set of options without those that another alternative of the
// machine's pods would be needed for, and, where a choice has to be kept, without
// those for which the pool or the buyer would pick another label.
func (b *builder) fixed(set feasible.Set, pods []podCount, option int) feasible.Set {
	set = set.Clone()
	if len(b.minimums[b.space.Options[option].Pool]) > 0 {
		for _, k := range b.pickedFor(pods) {
			for o := range set.All {
				if b.space.OptionValue(k, o) != b.space.OptionValue(k, option) {
					set.Remove(o)
				}
			}
		}
	}
	for _, pc := range pods {
		b.fixAlternatives(set, pc.class, option, func(all feasible.Set) feasible.Set { return all })
	}
	return set
}

// asVaried reports whether a machine keeps the same choice, for pools with
// minValues, when another option is planned for it.
func (b *builder) asVaried(pl *place, option int) bool {
	return len(b.minimums[b.space.Options[option].Pool]) == 0 ||
		slices.Equal(b.fixed(pl.options, pl.pods, pl.Option), b.fixed(pl.options, pl.pods, option))
}

// variedFull keeps of the options of pools with minValues those that may be
// filled to the brim: enough others of the static set are at least as large.
func (b *builder) variedFull(static int) feasible.Set {
	if set, ok := b.brim[static]; ok {
		return set
	}
	out := feasible.Full(len(b.space.Options))
	for _, pool := range b.space.Pools {
		if len(b.minimums[pool.Index]) == 0 {
			continue
		}
		same := feasible.NewSet(len(b.space.Options))
		same.AddRange(pool.First, pool.End)
		same.And(b.space.Interned(static))
		same.And(b.space.Available)
		run, ok := -1, false
		for o := pool.First; o < pool.End; o++ {
			if r := b.space.Options[o].Run; r != run {
				run, ok = r, b.varied(pool.Index, same, b.space.Options[o].Net)
			}
			if !ok {
				out.Remove(o)
			}
		}
	}
	b.brim[static] = out
	return out
}

// loner answers whether single pods of a class have enough choice.
type loner struct {
	b     *builder
	class int
	// known are the answers so far, by pool and by what topology and alternatives
	// tell apart.
	known map[string]*explain.Scant
}

// scant is the first label of which a machine of the option with just one pod of
// the class, which is this load, keeps fewer values than its pool asks for, or nil.
func (a *loner) scant(class, option int, load []int64) *explain.Scant {
	b := a.b
	index := b.space.Options[option].Pool
	if len(b.minimums[index]) == 0 {
		return nil
	}
	if a.known == nil || a.class != class {
		a.class, a.known = class, map[string]*explain.Scant{}
	}
	c := &b.classes[class]
	last := len(c.levels) - 1
	alone := &place{Place: topology.Place{ID: -1, Node: -1, Option: option}, options: feasible.NewSet(len(b.space.Options))}
	alone.pods = []podCount{{class, last, 1}}
	id := string(binary.AppendUvarint(b.domains(class, onNew, b.settled(alone), alone.Place), uint64(index)))
	known, ok := a.known[id]
	if ok && len(c.spec.NodeAlternatives) < 2 && len(c.spec.VolumeAlternatives) < 2 {
		return known
	}
	pool := b.space.PoolOf(option)
	alone.options.AddRange(pool.First, pool.End)
	a.known[id] = b.scant(index, b.sharedOptions(c, last, alone), load)
	return a.known[id]
}
