package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// pickedKeys lists the keys whose value the pool or the buyer picks, where there is
// more than one to pick from.
func pickedKeys(s *feasible.Space) []int {
	var keys []int
	for k := range s.Keys() {
		if !s.Offered(k) && s.Varies(k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// pickedFor are the picked keys that rules of the pods or of DaemonSets read. For
// all others it does not matter which value a machine gets.
func (b *builder) pickedFor(pods []podCount) []int {
	var keys []int
	for _, k := range b.picked {
		key := b.space.Keys()[k]
		if readByDaemons(b.space.Problem, key) || slices.ContainsFunc(pods, func(pc podCount) bool { return readBy(b.classes[pc.class].spec, key) }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// readBy reports whether what a class says of nodes mentions the key.
func readBy(c *model.PodClass, key string) bool {
	in := func(rs model.Requirements) bool {
		return slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == key })
	}
	return in(c.NodeRequirements) || slices.ContainsFunc(c.NodeAlternatives, in) || slices.ContainsFunc(c.VolumeAlternatives, in) ||
		slices.ContainsFunc(c.NodePreferences, func(p model.NodePreference) bool { return in(p.Requirements) })
}

// readByDaemons reports whether it depends on the key which DaemonSets run where.
func readByDaemons(p *model.Problem, key string) bool {
	for i := range p.Pools {
		for j := range p.Pools[i].Daemons {
			for _, rs := range p.Pools[i].Daemons[j].Requirements {
				if slices.ContainsFunc(rs, func(r model.Requirement) bool { return r.Key == key }) {
					return true
				}
			}
		}
	}
	return false
}
