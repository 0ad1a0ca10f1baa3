package feasible

import (
	"fmt"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// catalog is a model.Catalog with its labels interned.
type catalog struct {
	types []catalogType
	// sets says, per key, whether the cloud decides the label: such a label is
	// what the type says, and a pool cannot make it up.
	sets []bool
}

type catalogType struct {
	invalid               bool
	allocatable, capacity []int64
	open                  []openKey
	offerings             []catalogOffering
}

type catalogOffering struct {
	invalid bool
	price   model.Money
	values  []int32
}

// cloudKeys are always decided by the cloud, even in a catalogue in which no
// type carries them.
var cloudKeys = []string{
	model.LabelZone, model.LabelCapacityType, model.LabelInstanceType,
	"kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/region",
}

func (s *Space) compileCatalog(index int) *catalog {
	p, l := s.Problem, &s.labels
	src := &p.Catalogs[index]
	cat := &catalog{types: make([]catalogType, len(src.InstanceTypes)), sets: make([]bool, len(l.keys))}
	for _, key := range slices.Concat(cloudKeys, src.LabelKeys) {
		if k, ok := l.index[key]; ok {
			cat.sets[k] = true
		}
	}
	seen := make(map[string]bool, len(src.InstanceTypes))
	for i := range src.InstanceTypes {
		t, ct := &src.InstanceTypes[i], &cat.types[i]
		err := validateType(t, seen)
		seen[t.Name] = true
		if err != nil {
			ct.invalid = true
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "InstanceType", Name: t.Name, Message: err.Error()})
			continue
		}
		ct.capacity = s.capacityVector(t.Capacity, t.VolumeSlots)
		ct.allocatable = s.capacityVector(t.Allocatable(), t.VolumeSlots)
		s.compileOfferings(ct, t, cat)
	}
	return cat
}

func (s *Space) compileOfferings(ct *catalogType, t *model.InstanceType, cat *catalog) {
	l := &s.labels
	base := make([]int32, len(l.keys))
	for k, key := range l.keys {
		base[k] = Absent
		if v, ok := t.Labels[key]; ok {
			base[k] = l.dicts[k].id(v)
			cat.sets[k] = true
		}
		if values, ok := t.Choices[key]; ok {
			cat.sets[k] = true
			o := openKey{key: k}
			for _, v := range values {
				o.values = append(o.values, l.dicts[k].id(v))
			}
			ct.open = append(ct.open, o)
			l.picked[k] = true
			l.varies[k] = l.varies[k] || len(o.values) > 1
		}
	}
	base[l.index[model.LabelInstanceType]] = l.dicts[l.index[model.LabelInstanceType]].id(t.Name)
	ct.offerings = make([]catalogOffering, len(t.Offerings))
	for o := range t.Offerings {
		src, co := &t.Offerings[o], &ct.offerings[o]
		if err := validateOffering(src); err != nil {
			co.invalid = true
			name := fmt.Sprintf("%s in %q (%s)", t.Name, src.Zone, src.CapacityType)
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "Offering", Name: name, Message: err.Error()})
			continue
		}
		co.price = src.Price
		co.values = slices.Clone(base)
		if src.Zone != "" {
			k := l.index[model.LabelZone]
			co.values[k] = l.dicts[k].id(src.Zone)
		}
		if src.CapacityType != "" {
			k := l.index[model.LabelCapacityType]
			co.values[k] = l.dicts[k].id(string(src.CapacityType))
		}
		if len(src.Labels) == 0 {
			continue
		}
		for k, key := range l.keys {
			if v, ok := src.Labels[key]; ok {
				co.values[k] = l.dicts[k].id(v)
				cat.sets[k], l.varies[k] = true, true
			}
		}
	}
}
