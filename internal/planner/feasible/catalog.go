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
	// unwanted types are malformed, or no pool can buy them.
	unwanted              bool
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

// compileCatalog reads what the pools may buy of a catalogue.
func (s *Space) compileCatalog(index int, pools []*model.Pool) *catalog {
	p, l := s.Problem, &s.labels
	src := &p.Catalogs[index]
	cat := &catalog{types: make([]catalogType, len(src.InstanceTypes)), sets: make([]bool, len(l.keys))}
	for _, key := range slices.Concat(cloudKeys, src.LabelKeys) {
		if k, ok := l.index[key]; ok {
			cat.sets[k] = true
		}
	}
	s.checkTypes(cat, src, pools)
	wanted, offerings := 0, 0
	for i := range cat.types {
		if !cat.types[i].unwanted {
			wanted++
			offerings += len(src.InstanceTypes[i].Offerings)
		}
	}
	cat.offerings, cat.cells = make([]catalogOffering, offerings), make([]int32, offerings*len(l.keys))
	vectors := make([]int64, 2*wanted*s.Dims)
	vector := func() []int64 {
		v := vectors[:s.Dims:s.Dims]
		vectors = vectors[s.Dims:]
		return v
	}
	base := make([]int32, len(l.keys))
	for i := range src.InstanceTypes {
		t, ct := &src.InstanceTypes[i], &cat.types[i]
		if ct.unwanted {
			continue
		}
		ct.capacity, ct.allocatable = vector(), vector()
		s.layCapacity(ct.capacity, t.Capacity, t.VolumeSlots)
		s.layCapacity(ct.allocatable, t.Allocatable(), t.VolumeSlots)
		s.compileOfferings(ct, t, cat, base)
	}
	return cat
}

// checkTypes rejects what is malformed and finds the types that no pool can buy,
// which are most of them as a rule.
func (s *Space) checkTypes(cat *catalog, src *model.Catalog, pools []*model.Pool) {
	seen := make(map[string]bool, len(src.InstanceTypes))
	for i := range src.InstanceTypes {
		t, ct := &src.InstanceTypes[i], &cat.types[i]
		err := validateType(t, seen)
		seen[t.Name] = true
		if err != nil {
			ct.unwanted = true
			s.Rejected = append(s.Rejected, model.Rejection{Kind: "InstanceType", Name: t.Name, Message: err.Error()})
			continue
		}
		if !slices.ContainsFunc(pools, func(p *model.Pool) bool { return mayBuy(p, t) }) {
			ct.unwanted = true
			s.noteKeys(cat, t)
			for o := range t.Offerings {
				s.sound(t, &t.Offerings[o])
			}
		}
	}
}

// sound reports whether an offering is well formed, and rejects it if not.
func (s *Space) sound(t *model.InstanceType, o *model.Offering) bool {
	err := validateOffering(o)
	if err != nil {
		name := fmt.Sprintf("%s in %q (%s)", t.Name, o.Zone, o.CapacityType)
		s.Rejected = append(s.Rejected, model.Rejection{Kind: "Offering", Name: name, Message: err.Error()})
	}
	return err == nil
}

// mayBuy reports whether a type's own labels meet a pool's requirements.
func mayBuy(pool *model.Pool, t *model.InstanceType) bool {
	for i := range pool.Requirements {
		r := &pool.Requirements[i]
		switch r.Key {
		case model.LabelZone, model.LabelCapacityType:
			continue // what an offering says
		case model.LabelInstanceType:
			if r.Matches(t.Name, true) {
				continue
			}
			return false
		}
		value, ok := t.Labels[r.Key]
		if !ok || r.Matches(value, true) {
			continue
		}
		if _, open := t.Choices[r.Key]; !open && !anyOffering(t, r.Key) {
			return false
		}
	}
	return true
}

// anyOffering reports whether an offering of the type has the label.
func anyOffering(t *model.InstanceType, key string) bool {
	for o := range t.Offerings {
		if _, ok := t.Offerings[o].Labels[key]; ok {
			return true
		}
	}
	return false
}

// noteKeys notes the labels that a type has which nobody can buy.
func (s *Space) noteKeys(cat *catalog, t *model.InstanceType) {
	for k, key := range s.labels.keys {
		if cat.sets[k] || key == model.LabelNodePool || key == model.LabelHostname {
			continue
		}
		_, fixed := t.Labels[key]
		_, open := t.Choices[key]
		cat.sets[k] = fixed || open || anyOffering(t, key)
	}
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
		if key == model.LabelInstanceType {
			base[k] = l.dicts[k].id(t.Name)
		} else if v, ok := t.Labels[key]; ok {
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
	n := len(t.Offerings)
	ct.offerings, cat.offerings = cat.offerings[:n:n], cat.offerings[n:]
	for o := range t.Offerings {
		src, co := &t.Offerings[o], &ct.offerings[o]
		if !s.sound(t, src) {
			co.invalid = true
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
