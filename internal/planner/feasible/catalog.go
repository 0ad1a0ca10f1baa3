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
	// offerings and cells are storage for the types yet to be compiled.
	offerings []catalogOffering
	cells     []int32
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
	offerings := 0
	for i := range src.InstanceTypes {
		offerings += len(src.InstanceTypes[i].Offerings)
	}
	cat.offerings, cat.cells = make([]catalogOffering, offerings), make([]int32, offerings*len(l.keys))
	vectors := make([]int64, 2*len(src.InstanceTypes)*s.Dims)
	vector := func() []int64 {
		v := vectors[:s.Dims:s.Dims]
		vectors = vectors[s.Dims:]
		return v
	}
	base := make([]int32, len(l.keys))
	for i := range src.InstanceTypes {
		t, ct := &src.InstanceTypes[i], &cat.types[i]
		err := validateType(t, seen)
		seen[t.Name] = true
		if err != nil {
			ct.invalid = true
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "InstanceType", Name: t.Name, Message: err.Error()})
			continue
		}
		ct.capacity, ct.allocatable = vector(), vector()
		s.layCapacity(ct.capacity, t.Capacity, t.VolumeSlots)
		s.layCapacity(ct.allocatable, t.Allocatable(), t.VolumeSlots)
		s.compileOfferings(ct, t, cat, base)
	}
	return cat
}

// onlyPlace reports whether an offering's labels say no more than its zone and
// capacity type, as most do.
func onlyPlace(o *model.Offering) bool {
	n := 0
	if v, ok := o.Labels[model.LabelZone]; ok && v == o.Zone && v != "" {
		n++
	}
	if v, ok := o.Labels[model.LabelCapacityType]; ok && v == string(o.CapacityType) && v != "" {
		n++
	}
	return n == len(o.Labels)
}

// compileOfferings reads a type's offerings; base is scratch for its labels.
func (s *Space) compileOfferings(ct *catalogType, t *model.InstanceType, cat *catalog, base []int32) {
	l := &s.labels
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
	n := len(t.Offerings)
	ct.offerings, cat.offerings = cat.offerings[:n:n], cat.offerings[n:]
	for o := range t.Offerings {
		src, co := &t.Offerings[o], &ct.offerings[o]
		if err := validateOffering(src); err != nil {
			co.invalid = true
			name := fmt.Sprintf("%s in %q (%s)", t.Name, src.Zone, src.CapacityType)
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "Offering", Name: name, Message: err.Error()})
			continue
		}
		co.price = src.Price
		co.values, cat.cells = cat.cells[:len(base):len(base)], cat.cells[len(base):]
		copy(co.values, base)
		if src.Zone != "" {
			k := l.index[model.LabelZone]
			co.values[k] = l.dicts[k].id(src.Zone)
		}
		if src.CapacityType != "" {
			k := l.index[model.LabelCapacityType]
			co.values[k] = l.dicts[k].id(string(src.CapacityType))
		}
		if onlyPlace(src) {
			continue
		}
		for key, v := range src.Labels { // every key has a dictionary of its own: order does not matter
			if k, ok := l.index[key]; ok {
				co.values[k] = l.dicts[k].id(v)
				cat.sets[k], l.varies[k] = true, true
			}
		}
	}
}
