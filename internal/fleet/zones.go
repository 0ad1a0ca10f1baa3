package fleet

import (
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// VolumeZones are the zones of which the bound volumes of a pod of a snapshot leave it the choice,
// sorted, and none where they leave it all.
func VolumeZones(s *Snapshot, p *Pod) []string {
	var left zones
	for _, name := range p.Claims {
		if c := s.vclaims[objectKey{p.Ref.Namespace, name}]; c != nil && s.volumes[c.Volume] != nil {
			left.meet(s.volumes[c.Volume].Alternatives)
		}
	}
	return left.sorted()
}

// Zones are the zones of which the required node affinity of a pod leaves it the choice, and its
// bound volumes with their [VolumeZones], sorted, and none where they leave it all.
func Zones(spec *PodSpec, volumes []string) []string {
	left := zones{chosen: volumes, named: len(volumes) > 0}
	left.meet([]model.Requirements{spec.NodeRequirements})
	left.meet(spec.NodeAlternatives)
	return left.sorted()
}

// zones are those that rules which name zones leave.
type zones struct {
	chosen []string
	// named says that a rule has named any: until then all are left.
	named bool
}

// meet keeps the zones of which one of the alternatives, which are OR-ed, may be meant. One
// that names no zone may mean any.
func (z *zones) meet(alternatives []model.Requirements) {
	var all []string
	for _, rs := range alternatives {
		i := slices.IndexFunc(rs, func(r model.Requirement) bool { return r.Key == model.LabelZone && r.Operator == model.In })
		if i < 0 {
			return
		}
		all = append(all, rs[i].Values...)
	}
	switch {
	case len(alternatives) == 0:
	case !z.named:
		z.chosen, z.named = all, true
	default:
		z.chosen = slices.DeleteFunc(slices.Clone(z.chosen), func(zone string) bool { return !slices.Contains(all, zone) })
	}
}

func (z *zones) sorted() []string {
	out := slices.Clone(z.chosen)
	slices.Sort(out)
	return slices.Compact(out)
}
