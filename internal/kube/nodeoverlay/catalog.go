package nodeoverlay

import (
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

// instanceTypes are the types of a catalogue as Karpenter's evaluation wants them: with
// labels and the prices of machines, in the same order. It looks at nothing else.
func instanceTypes(catalog *fleet.Catalog) []*cloudprovider.InstanceType {
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
	out := make([]*cloudprovider.InstanceType, len(catalog.InstanceTypes))
	for i := range catalog.InstanceTypes {
		out[i] = instanceType(&catalog.InstanceTypes[i], keys)
	}
	return out
}

// instanceType converts one type. A label that others have and it does not is one that
// its nodes lack.
func instanceType(t *model.InstanceType, keys map[string]bool) *cloudprovider.InstanceType {
	out := &cloudprovider.InstanceType{Name: t.Name, Requirements: scheduling.NewRequirements(), Capacity: corev1.ResourceList{}}
	values := map[string][]string{}
	for key, value := range t.Labels {
		values[key] = []string{value}
	}
	maps.Copy(values, t.Choices)
	for i := range t.Offerings {
		o := &t.Offerings[i]
		for key, value := range o.Labels {
			if !slices.Contains(values[key], value) {
				values[key] = append(slices.Clone(values[key]), value)
			}
		}
		out.Offerings = append(out.Offerings, &cloudprovider.Offering{
			Requirements: scheduling.NewLabelRequirements(o.Labels), Price: o.MachinePrice().Dollars(), Available: o.Available,
		})
	}
	for key := range keys {
		if values[key] == nil {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	for key, v := range values {
		out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, v...))
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
	t.Capacity, t.Overhead = capacity, overhead
	t.Offerings = slices.Clone(t.Offerings)
	for i, price := range c.prices {
		o := &t.Offerings[i]
		o.Price = price + o.DiskPrice + o.NodePrice
	}
}
