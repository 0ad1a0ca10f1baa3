package instance

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/bitset"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// MinValue is a requirement of a pool that the offerings of a node keep at least
// Count different values of a label.
type MinValue struct {
	// Key numbers the label in the space.
	Key, Count int
}

// PodCount is a number of pods of a class that were placed at one level of its
// preferences.
type PodCount struct{ Class, Level, Count int }

// MinValues answers whether sets of options keep the variety that the pools'
// minValues ask for. It never changes.
type MinValues struct {
	space *feasible.Space
	// sets are those that levels name by number.
	sets    *bitset.Interned
	classes []Class
	// byPool holds the minValues by pool index, and only pools that have some. It
	// is empty when the policy gives minValues up.
	byPool map[int][]MinValue
	// bounds are the pools of byPool as the space has them.
	bounds map[int]feasible.Pool
	// chosen are the labels whose value the pool or the buyer chooses.
	chosen []chosenKey
}

// chosenKey is a label whose value the pool or the buyer chooses, where there is
// more than one to choose from.
type chosenKey struct {
	key int
	// always says that the value matters on every node: DaemonSets read it, or pods
	// with spread constraints do, for which only nodes that meet their rules count.
	always bool
}

func newMinValues(s *feasible.Space, sets *bitset.Interned, classes []Class) *MinValues {
	m := &MinValues{space: s, sets: sets, classes: classes, byPool: map[int][]MinValue{}, bounds: map[int]feasible.Pool{}}
	for k, name := range s.Labels.Keys() {
		if s.Labels.Offered(k) || !s.Labels.Varies(k) {
			continue
		}
		always := readByDaemons(s.Problem, name) || slices.ContainsFunc(classes, func(c Class) bool {
			return len(c.Spec.Spread) > 0 && readBy(c.Spec, name)
		})
		m.chosen = append(m.chosen, chosenKey{k, always})
	}
	if s.Problem.Policy.RelaxMinValues {
		return m
	}
	for _, pool := range s.Pools {
		for _, r := range s.Problem.Pools[pool.Index].Requirements {
			if r.MinValues > 0 {
				m.byPool[pool.Index] = append(m.byPool[pool.Index], MinValue{s.Labels.KeyIndex(r.Key), r.MinValues})
				m.bounds[pool.Index] = pool
			}
		}
	}
	return m
}

// Any reports whether some pool has minValues.
func (m *MinValues) Any() bool { return len(m.byPool) > 0 }

// Of are the minValues of a pool, by its index in the problem.
func (m *MinValues) Of(pool int) []MinValue { return m.byPool[pool] }

// Choices reports whether the pool or the buyer chooses the value of some label.
func (m *MinValues) Choices() bool { return len(m.chosen) > 0 }

// Shortage is a label of which a node's offerings keep too few values.
type Shortage struct {
	Key        string
	Have, Want int
}

// Met reports whether those options of the set that hold the load keep enough
// different values for their pool.
func (m *MinValues) Met(pool int, options bitset.Set, load []int64) bool {
	return m.Short(pool, options, load) == nil
}

// Short is the first label of which those options of the set that hold the load keep
// too few values for their pool, or nil. It looks at the pool's options alone: of many
// pools each has a small part of them.
func (m *MinValues) Short(pool int, options bitset.Set, load []int64) *Shortage {
	bounds := m.bounds[pool]
	own := options[:min(len(options), (bounds.End+63)/64)]
	for _, v := range m.byPool[pool] {
		seen := map[int32]bool{}
		for o := own.Next(bounds.First); o >= 0 && o < bounds.End; o = own.Next(o + 1) {
			if value := m.space.Labels.OptionValue(v.Key, o); value >= 0 && !seen[value] && feasible.Fits(load, m.space.Net(o)) {
				seen[value] = true
				if len(seen) >= v.Count {
					break
				}
			}
		}
		if len(seen) < v.Count {
			return &Shortage{Key: m.space.Labels.Keys()[v.Key], Have: len(seen), Want: v.Count}
		}
	}
	return nil
}

// Filled are all options without those of the tier's pools with minValues that may not be
// filled to the brim: too few others of a class's static set (see [Level]) are at
// least as large. The caller owns the set.
func (m *MinValues) Filled(static, tier int) bitset.Set {
	out := bitset.Full(len(m.space.Options))
	same := m.sets.Set(static).Clone()
	same.And(m.space.Supply.Available)
	for _, pool := range m.space.Pools {
		if pool.Tier != tier || len(m.byPool[pool.Index]) == 0 {
			continue
		}
		run, ok := int32(-1), false
		for o := pool.First; o < pool.End; o++ {
			if r := m.space.Options[o].Run; r != run {
				run, ok = r, m.Met(pool.Index, same, m.space.Net(o))
			}
			if !ok {
				out.Remove(o)
			}
		}
	}
	return out
}

// FixAlternatives keeps of a set what meets the first of a class's alternatives
// that the planned option meets. Of several alternatives one is fixed because the
// requirements of a NodeClaim have no "or". The words function cuts from a set of
// all options the part that the given set has.
func (m *MinValues) FixAlternatives(set bitset.Set, class, option int, words func(bitset.Set) bitset.Set) {
	spec := m.classes[class].Spec
	for _, alternatives := range [2][]model.Requirements{spec.NodeAlternatives, spec.VolumeAlternatives} {
		if len(alternatives) < 2 {
			continue
		}
		for _, rs := range alternatives {
			if met := m.space.Labels.Matching(rs); met != nil && met.Has(option) {
				set.And(words(met))
				break
			}
		}
	}
}

// Fixed is a copy of a set of options for a node with these pods that is planned as
// the option. It leaves out the options that need another alternative of the pods
// and, in pools with minValues, those with another value of a chosen label.
func (m *MinValues) Fixed(set bitset.Set, pods []PodCount, option int) bitset.Set {
	set = set.Clone()
	if len(m.byPool[int(m.space.Options[option].Pool)]) > 0 {
		for _, k := range m.ChosenFor(pods) {
			for o := range set.All {
				if m.space.Labels.OptionValue(k, o) != m.space.Labels.OptionValue(k, option) {
					set.Remove(o)
				}
			}
		}
	}
	for _, pc := range pods {
		m.FixAlternatives(set, pc.Class, option, func(all bitset.Set) bitset.Set { return all })
	}
	return set
}

// ChosenFor are the chosen labels whose value matters on a node with these pods.
func (m *MinValues) ChosenFor(pods []PodCount) []int {
	var keys []int
	for _, p := range m.chosen {
		name := m.space.Labels.Keys()[p.key]
		if p.always || slices.ContainsFunc(pods, func(pc PodCount) bool { return readBy(m.classes[pc.Class].Spec, name) }) {
			keys = append(keys, p.key)
		}
	}
	return keys
}

// mentioning reports of requirements whether one of them is on the key.
func mentioning(key string) func(model.Requirements) bool {
	return func(rs model.Requirements) bool {
		return slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == key })
	}
}

// readBy reports whether what a class says of nodes mentions the key.
func readBy(c *model.PodClass, key string) bool {
	in := mentioning(key)
	return in(c.NodeRequirements) || in(c.Devices) || slices.ContainsFunc(c.NodeAlternatives, in) ||
		slices.ContainsFunc(c.VolumeAlternatives, in) ||
		slices.ContainsFunc(c.NodePreferences, func(p model.NodePreference) bool { return in(p.Requirements) })
}

// readByDaemons reports whether it depends on the key which DaemonSets run where.
func readByDaemons(p *model.Problem, key string) bool {
	for i := range p.Pools {
		for j := range p.Pools[i].Daemons {
			if slices.ContainsFunc(p.Pools[i].Daemons[j].Requirements, mentioning(key)) {
				return true
			}
		}
	}
	return false
}
