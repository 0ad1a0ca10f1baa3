package fleet

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nodeautoprovision/nap/internal/model"
)

// forecast is what is known of a node before it is launched.
type forecast struct {
	// common are the labels that all offerings which it may become share.
	common map[string]string
	// allocatable is what pods may use on every one of these offerings.
	allocatable Amounts
	// capacity, price (per hour) and slots (volumes by CSI driver) are those of the
	// cheapest offering: it will be bought unless the cloud has none left.
	capacity Amounts
	price    model.Money
	slots    map[string]int
	// gpus are the different ones of the offerings; nil where one has none.
	gpus []*model.GPU
	// coverable are the offerings that may be paid in advance.
	coverable []candidate
}

// forecast is what a claim will become. Claims that were made for the same plan mostly ask for
// the same of a catalogue, whatever their own labels are, so forecasts are kept by that.
func (c *poolCatalogs) forecast(claim *Claim, catalog *Catalog) *forecast {
	keys := c.keys[catalog]
	if keys == nil {
		keys = catalog.labelKeys()
		c.keys[catalog] = keys
	}
	key := fmt.Appendf(nil, "%p", catalog)
	var asked model.Requirements
	for _, r := range claim.Requirements {
		value, known := claim.Labels[r.Key]
		switch {
		case keys[r.Key]:
			asked = append(asked, r)
			key = fmt.Appendf(key, "\x00%s %q %t", r, value, known)
		case !r.Matches(value, known):
			return nil // no machine has the label
		}
	}
	f, known := c.forecasts[string(key)]
	if !known {
		f = newForecast(asked, claim.Labels, catalog)
		c.forecasts[string(key)] = f
	}
	return f
}

// labelKeys are the labels that a machine may have.
func (c *Catalog) labelKeys() map[string]bool {
	keys := map[string]bool{model.LabelInstanceType: true, model.LabelZone: true, model.LabelCapacityType: true}
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		for key := range t.Labels {
			keys[key] = true
		}
		for key := range t.Choices {
			keys[key] = true
		}
		for j := range t.Offerings {
			for key := range t.Offerings[j].Labels {
				keys[key] = true
			}
		}
	}
	return keys
}

// foresee fills in a node that is not launched.
func (c *poolCatalogs) foresee(n *stateNode, catalog *Catalog) {
	f := c.forecast(n.claim, catalog)
	labels := maps.Clone(n.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for _, r := range n.claim.Requirements {
		if r.Operator == model.In && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	if f != nil {
		for k, v := range f.common {
			if _, own := labels[k]; !own {
				labels[k] = v
			}
		}
		n.allocatable, n.capacity, n.cost.price, n.slots = f.allocatable, f.capacity, f.price, f.slots
		n.cost.priced, n.gpus = true, f.gpus
	}
	n.labels = labels
}

// newForecast returns nil where no offering satisfies what a claim with these labels asks for.
// Offerings that are unavailable count only where no other one is left.
func newForecast(asked model.Requirements, labels map[string]string, c *Catalog) *forecast {
	candidates := candidatesFor(asked, labels, c)
	if slices.ContainsFunc(candidates, func(x candidate) bool { return x.offering.Available }) {
		candidates = slices.DeleteFunc(candidates, func(x candidate) bool { return !x.offering.Available })
	}
	if len(candidates) == 0 {
		return nil
	}
	best, common, allocatable := candidates[0], candidates[0].labels(), candidates[0].kind.Allocatable()
	for i, x := range candidates[1:] {
		if x.offering.Price < best.offering.Price {
			best = x
		}
		maps.DeleteFunc(common, func(k, v string) bool {
			own, _ := x.value(k)
			return own != v
		})
		if x.kind != candidates[i].kind {
			allocatable = smaller(allocatable, x.kind.Allocatable())
		}
	}
	var coverable []candidate
	for _, x := range candidates {
		if x.offering.CapacityType == model.OnDemand && c.Advance.Covers(x.kind.Name) {
			coverable = append(coverable, x)
		}
	}
	return &forecast{
		coverable:   coverable,
		common:      common,
		allocatable: named(allocatable, c.Axes),
		capacity:    named(best.kind.Capacity, c.Axes),
		price:       best.offering.Price,
		slots:       best.kind.VolumeSlots,
		gpus:        gpusOf(candidates),
	}
}

// gpusOf are the different GPUs of offerings, nil where one has none.
func gpusOf(candidates []candidate) []*model.GPU {
	var out []*model.GPU
	for _, x := range candidates {
		gpu := x.kind.GPU
		if gpu == nil {
			return nil
		}
		if !slices.ContainsFunc(out, func(known *model.GPU) bool { return *known == *gpu }) {
			out = append(out, gpu)
		}
	}
	return out
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

func candidatesFor(asked model.Requirements, labels map[string]string, c *Catalog) []candidate {
	types := map[string]bool{}
	var rest model.Requirements
	for _, r := range asked {
		if r.Key != model.LabelInstanceType || r.Operator != model.In {
			rest = append(rest, r)
			continue
		}
		for _, v := range r.Values {
			types[v] = true
		}
	}
	var out []candidate
	for i := range c.InstanceTypes {
		t := &c.InstanceTypes[i]
		if len(types) > 0 && !types[t.Name] {
			continue
		}
		for j := range t.Offerings {
			if x := (candidate{t, &t.Offerings[j]}); x.meets(rest, labels) {
				out = append(out, x)
			}
		}
	}
	return out
}

// meets reports whether the offering satisfies requirements, on a node that also
// gets these labels.
func (x candidate) meets(rs model.Requirements, labels map[string]string) bool {
	for _, r := range rs {
		value, known := x.value(r.Key)
		if !known {
			if _, open := x.kind.Choices[r.Key]; open {
				continue
			}
			value, known = labels[r.Key]
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
