package fleet

import (
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// foresee fills in a machine that is not launched: the labels that all offerings
// it may become have in common, room that all of them have, and the capacity and
// price of the cheapest one, which is what will be bought unless the cloud is
// out of it.
func (m *machine) foresee(c *Catalog) {
	labels := maps.Clone(m.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range m.claim.Requirements {
		if r.Operator == model.In && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	m.labels = labels
	candidates := m.candidates(c)
	if slices.ContainsFunc(candidates, func(x candidate) bool { return x.offering.Available }) {
		candidates = slices.DeleteFunc(candidates, func(x candidate) bool { return !x.offering.Available })
	}
	if len(candidates) == 0 {
		return
	}
	best := candidates[0]
	common := candidates[0].labels()
	room := best.kind.Allocatable()
	for _, x := range candidates[1:] {
		if x.offering.Price < best.offering.Price {
			best = x
		}
		own := x.labels()
		maps.DeleteFunc(common, func(k, v string) bool { return own[k] != v })
		room = smaller(room, x.kind.Allocatable())
	}
	maps.Copy(common, labels)
	m.labels = common
	m.room = named(room, c.Axes)
	m.capacity = named(best.kind.Capacity, c.Axes)
	m.price = best.offering.Price
	m.slots = best.kind.VolumeSlots
}

// candidate is an offering that a claim may be launched as.
type candidate struct {
	kind     *model.InstanceType
	offering *model.Offering
}

func (x candidate) labels() map[string]string {
	labels := make(map[string]string, len(x.kind.Labels)+len(x.offering.Labels)+3)
	maps.Copy(labels, x.kind.Labels)
	maps.Copy(labels, x.offering.Labels)
	labels[model.LabelInstanceType] = x.kind.Name
	labels[model.LabelZone] = x.offering.Zone
	labels[model.LabelCapacityType] = string(x.offering.CapacityType)
	return labels
}

func (m *machine) candidates(c *Catalog) []candidate {
	named := map[string]bool{}
	for _, r := range m.claim.Requirements {
		if r.Key == model.LabelInstanceType && r.Operator == model.In {
			for _, v := range r.Values {
				named[v] = true
			}
		}
	}
	var out []candidate
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		if len(named) > 0 && !named[t.Name] {
			continue
		}
		for j := range t.Offerings {
			if x := (candidate{t, &t.Offerings[j]}); x.meets(m.claim) {
				out = append(out, x)
			}
		}
	}
	return out
}

func (x candidate) meets(c *Claim) bool {
	for _, r := range c.Requirements {
		value, known := x.value(r.Key)
		if !known {
			if _, open := x.kind.Choices[r.Key]; open {
				continue
			}
			value, known = c.Labels[r.Key]
		}
		if !r.Matches(value, known) {
			return false
		}
	}
	return true
}

func (x candidate) value(key string) (string, bool) {
	switch key {
	case model.LabelInstanceType:
		return x.kind.Name, true
	case model.LabelZone:
		return x.offering.Zone, true
	case model.LabelCapacityType:
		return string(x.offering.CapacityType), true
	}
	if v, ok := x.offering.Labels[key]; ok {
		return v, true
	}
	v, ok := x.kind.Labels[key]
	return v, ok
}

func smaller(a, b model.Resources) model.Resources {
	out := make(model.Resources, max(len(a), len(b)))
	for i := range out {
		out[i] = min(a.Get(i), b.Get(i))
	}
	return out
}

func named(v model.Resources, axes model.Axes) Amounts {
	var a Amounts
	for i, name := range axes {
		a.Set(name, v.Get(i))
	}
	return a
}
