package nodeoverlay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// change is what overlays make of one instance type of a catalogue.
type change struct {
	// kind is its index.
	kind int
	// capacity are the resources that it has besides, in the units of
	// [model.Resources], by name.
	capacity map[string]int64
	// prices are those of the machine itself, by the index of the offering.
	prices map[int]model.Money
}

// converted are the types of a catalogue as Karpenter's evaluation wants them. Those that no
// overlay tells apart have one name, that of the first of them.
type converted struct {
	// all are in the order of the catalogue; first is one of each name.
	all, first []*cloudprovider.InstanceType
}

// convert converts types with the labels that overlays ask for and the prices of machines.
// Karpenter's evaluation looks at nothing else.
func convert(catalog *fleet.Catalog, asked map[string]bool) *converted {
	keys := map[string]bool{}
	for i := range catalog.InstanceTypes {
		t := &catalog.InstanceTypes[i]
		for key := range t.Labels {
			keys[key] = true
		}
		for j := range t.Offerings {
			for key := range t.Offerings[j].Labels {
				keys[key] = true
			}
		}
	}
	maps.DeleteFunc(keys, func(key string, _ bool) bool { return !asked[key] })
	out, first := &converted{}, map[string]string{}
	for i := range catalog.InstanceTypes {
		src := &catalog.InstanceTypes[i]
		values := valuesOf(src, keys)
		t := instanceType(src, keys, values)
		seen := fmt.Appendf(nil, "%q", values)
		for j := range src.Offerings {
			seen = fmt.Appendf(seen, "%q", src.Offerings[j].Labels)
		}
		if name, known := first[string(seen)]; known {
			t.Name = name
		} else {
			first[string(seen)] = t.Name
			out.first = append(out.first, t)
		}
		out.all = append(out.all, t)
	}
	return out
}

// valuesOf are the values that a type and its offerings have of labels.
func valuesOf(t *model.InstanceType, keys map[string]bool) map[string][]string {
	values := map[string][]string{}
	for key := range keys {
		if value, has := t.Labels[key]; has {
			values[key] = []string{value}
		}
		if choices, has := t.Choices[key]; has {
			values[key] = choices
		}
	}
	for i := range t.Offerings {
		for key, value := range t.Offerings[i].Labels {
			if keys[key] && !slices.Contains(values[key], value) {
				values[key] = append(slices.Clone(values[key]), value)
			}
		}
	}
	return values
}

// instanceType converts one type, which has these values of labels. A label of the keys, which
// others have, is one that its nodes lack where it has no value.
func instanceType(t *model.InstanceType, keys map[string]bool, values map[string][]string) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{Name: t.Name, Requirements: scheduling.NewRequirements(), Capacity: corev1.ResourceList{}}
	for i := range t.Offerings {
		o := &t.Offerings[i]
		bare := o.WithoutCover() // what is paid in advance stays as it is
		out.Offerings = append(out.Offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewLabelRequirements(o.Labels), Price: bare.MachinePrice().Dollars(), Available: o.Available,
		})
	}
	for key := range keys {
		if values[key] == nil {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		} else {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values[key]...))
		}
	}
	return out
}

// compare lists what overlays have changed. Both lists have the same types in the same
// order, with the same offerings.
func compare(before, after []*cloudprovider.InstanceType) []change {
	var out []change
	for i := range after {
		if before[i] == after[i] {
			continue
		}
		c := change{kind: i, capacity: map[string]int64{}, prices: map[int]model.Money{}}
		if after[i].IsCapacityOverlayApplied() {
			for name, quantity := range after[i].Capacity {
				c.capacity[string(name)] = quantity.Value()
			}
		}
		for j, o := range after[i].Offerings {
			if o.IsPriceOverlaid() {
				c.prices[j] = model.USD(o.Price)
			}
		}
		out = append(out, c)
	}
	return out
}

// apply is a catalogue with changes. Its axes are those of the given one and then the
// new resources. Without changes it is the catalogue itself.
func apply(catalog *fleet.Catalog, changes []change) *fleet.Catalog {
	if len(changes) == 0 {
		return catalog
	}
	out := *catalog
	names := map[string]bool{}
	for _, c := range changes {
		for name := range c.capacity {
			names[name] = out.Axes.Index(name) < 0
		}
	}
	out.Axes = slices.Clone(catalog.Axes)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] {
			out.Axes = append(out.Axes, name)
		}
	}
	out.InstanceTypes = slices.Clone(catalog.InstanceTypes)
	for _, c := range changes {
		c.apply(&out.InstanceTypes[c.kind], out.Axes)
	}
	return &out
}

// apply changes an instance type, whose vectors and offerings it replaces.
func (c *change) apply(t *model.InstanceType, axes model.Axes) {
	capacity, overhead := make(model.Resources, len(axes)), make(model.Resources, len(axes))
	copy(capacity, t.Capacity)
	copy(overhead, t.Overhead)
	for name, amount := range c.capacity {
		axis := axes.Index(name)
		if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			// Huge pages are taken out of the memory that ordinary pods can use.
			overhead[model.Memory] += amount - capacity[axis]
		}
		capacity[axis] = amount
	}
	t.Capacity, t.Overhead, t.CapacityOverlaid = capacity, overhead, len(c.capacity) > 0
	t.Offerings = slices.Clone(t.Offerings)
	for i, price := range c.prices {
		o := t.Offerings[i].WithoutCover()
		o.Price, o.PriceOverlaid = price+o.DiskPrice+o.NodePrice, true
		if cover, covered := t.Offerings[i].Cover(); covered {
			o, _ = o.WithCover(cover)
		}
		t.Offerings[i] = o
	}
}
