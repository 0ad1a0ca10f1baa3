package kube

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

// Catalog converts the instance types of a Karpenter provider. What a type
// leaves open (several values of one label) becomes a choice of the buyer, unless
// its offerings decide it.
func Catalog(its []*cloudprovider.InstanceType) *fleet.Catalog {
	c := &fleet.Catalog{Axes: catalogAxes(its)}
	for _, it := range its {
		if it != nil {
			c.InstanceTypes = append(c.InstanceTypes, instanceType(it, c.Axes))
		}
	}
	slices.SortStableFunc(c.InstanceTypes, func(a, b model.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func catalogAxes(its []*cloudprovider.InstanceType) model.Axes {
	var names []string
	add := func(list corev1.ResourceList) {
		for name, q := range list {
			if !q.IsZero() {
				names = append(names, string(name))
			}
		}
	}
	for _, it := range its {
		if it == nil {
			continue
		}
		add(it.Capacity)
		for _, o := range it.Offerings {
			add(o.CapacityOverride)
		}
	}
	return model.NewAxes(names...)
}

func instanceType(it *cloudprovider.InstanceType, axes model.Axes) model.InstanceType {
	base := model.InstanceType{Name: it.Name, Labels: map[string]string{}, VolumeSlots: it.VolumeAttachmentLimits}
	decided := map[string]bool{model.LabelZone: true, model.LabelCapacityType: true}
	for _, o := range it.Offerings {
		for key := range o.Requirements {
			decided[key] = true
		}
	}
	for key, r := range it.Requirements {
		if decided[key] || r.Operator() != corev1.NodeSelectorOpIn {
			continue
		}
		switch values := slices.Sorted(slices.Values(r.Values())); len(values) {
		case 0:
		case 1:
			base.Labels[key] = values[0]
		default:
			if base.Choices == nil {
				base.Choices = map[string][]string{}
			}
			base.Choices[key] = values
		}
	}
	base.Labels[model.LabelInstanceType] = it.Name
	return withOfferings(it, base, axes)
}

// withOfferings adds the offerings, and the capacity that every one of them has
// at least: the planner counts on a node before it knows which one it gets.
func withOfferings(it *cloudprovider.InstanceType, out model.InstanceType, axes model.Axes) model.InstanceType {
	out.Capacity, out.Overhead = capacity(it, &cloudprovider.Offering{}, axes)
	for _, o := range it.Offerings {
		if len(o.CapacityOverride) > 0 || o.OverheadOverride != nil {
			size, overhead := capacity(it, o, axes)
			for i := range axes {
				out.Capacity[i] = min(out.Capacity[i], size[i])
				out.Overhead[i] = max(out.Overhead[i], overhead[i])
			}
		}
		out.Offerings = append(out.Offerings, offering(o))
	}
	return out
}

func capacity(it *cloudprovider.InstanceType, o *cloudprovider.Offering, axes model.Axes) (size, overhead model.Resources) {
	all := maps.Clone(it.Capacity)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, o.CapacityOverride)
	kept := corev1.ResourceList{}
	if it.Overhead != nil {
		maps.Copy(kept, it.Overhead.Total())
	}
	if o.OverheadOverride != nil {
		maps.Copy(kept, o.OverheadOverride.Total())
	}
	total, reserved := amounts(all), amounts(kept)
	for _, e := range total.Extended {
		// Huge pages are taken out of the memory that ordinary pods can use.
		if strings.HasPrefix(e.Name, corev1.ResourceHugePagesPrefix) {
			reserved.Memory += e.Value
		}
	}
	return total.Vector(axes), reserved.Vector(axes)
}

func offering(o *cloudprovider.Offering) model.Offering {
	out := model.Offering{
		Zone:         single(o.Requirements, model.LabelZone),
		CapacityType: model.CapacityType(single(o.Requirements, model.LabelCapacityType)),
		Labels:       map[string]string{},
		Price:        model.USD(o.Price),
		Available:    o.Available,
	}
	for key := range o.Requirements {
		if value := single(o.Requirements, key); value != "" {
			out.Labels[key] = value
		}
	}
	if !o.Available {
		out.Unavailable = "the provider reports it as unavailable"
	}
	if out.CapacityType == model.Reserved {
		out.Remaining = o.ReservationCapacity
		if cloudprovider.ReservationIDLabel != "" {
			out.Reservation = single(o.Requirements, cloudprovider.ReservationIDLabel)
		}
	}
	return out
}

// single returns the only value of a requirement, or nothing.
func single(rs scheduling.Requirements, key string) string {
	if r, ok := rs[key]; ok && r.Operator() == corev1.NodeSelectorOpIn && r.Len() == 1 {
		return r.Values()[0]
	}
	return ""
}
