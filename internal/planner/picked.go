package planner

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner/feasible"
)

// pickedKey is a label whose value the pool or the buyer picks.
type pickedKey struct {
	key int
	// always says that the value matters on every machine: DaemonSets read it, or
	// pods that spread, who count the machines that meet their rules.
	always bool
}

// pickedKeys lists the keys whose value the pool or the buyer picks, where there is
// more than one to pick from.
func pickedKeys(s *feasible.Space, classes []class) []pickedKey {
	var keys []pickedKey
	for k, name := range s.Keys() {
		if s.Offered(k) || !s.Varies(k) {
			continue
		}
		always := readByDaemons(s.Problem, name) || slices.ContainsFunc(classes, func(c class) bool {
			return len(c.spec.Spread) > 0 && readBy(c.spec, name)
		})
		keys = append(keys, pickedKey{k, always})
	}
	return keys
}

// pickedFor are the picked keys whose value matters on a machine with these pods.
func (b *builder) pickedFor(pods []podCount) []int {
	var keys []int
	for _, p := range b.picked {
		name := b.space.Keys()[p.key]
		if p.always || slices.ContainsFunc(pods, func(pc podCount) bool { return readBy(b.classes[pc.class].spec, name) }) {
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
	return in(c.NodeRequirements) || slices.ContainsFunc(c.NodeAlternatives, in) || slices.ContainsFunc(c.VolumeAlternatives, in) ||
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
