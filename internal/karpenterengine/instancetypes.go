package karpenterengine

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/nodeautoprovision/nap/internal/kube"
)

// reservationLabel names the capacity reservation of an offering. As with the well
// known labels, Karpenter keeps one such label for the whole process.
const reservationLabel = "example.com/reservation"

// InstanceTypes turns a catalogue file into the instance types of a Karpenter
// provider. A label that some size has and another lacks is stated as absent,
// as Karpenter asks of its providers. The catalogue's labels become well known
// to Karpenter, which keeps one list of them for the whole process.
func InstanceTypes(f *kube.CatalogFile) ([]*cloudprovider.InstanceType, error) {
	keys := map[string]bool{}
	for i := range f.InstanceTypes {
		for key := range f.InstanceTypes[i].Labels {
			keys[key] = true
		}
		for key := range f.InstanceTypes[i].Choices {
			keys[key] = true
		}
	}
	for _, key := range append(slices.Sorted(maps.Keys(keys)), reservationLabel) {
		if !v1.WellKnownLabels.Has(key) { // the table is global: it is not written without need
			v1.WellKnownLabels.Insert(key)
		}
	}
	var out []*cloudprovider.InstanceType
	for i := range f.InstanceTypes {
		t, err := instanceType(&f.InstanceTypes[i], keys)
		if err != nil {
			return nil, fmt.Errorf("size %s: %w", f.InstanceTypes[i].Name, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func instanceType(t *kube.FileInstanceType, keys map[string]bool) (*cloudprovider.InstanceType, error) {
	capacity, err := quantities(t.Capacity)
	if err != nil {
		return nil, err
	}
	kept, err := quantities(t.Overhead)
	if err != nil {
		return nil, err
	}
	out := &cloudprovider.InstanceType{
		Name: t.Name, Capacity: capacity, Requirements: scheduling.NewRequirements(), VolumeAttachmentLimits: t.VolumeSlots,
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: kept},
	}
	var zones, capacityTypes []string
	for _, o := range t.Offerings {
		available := o.Available == nil || *o.Available
		if available {
			zones, capacityTypes = append(zones, o.Zone), append(capacityTypes, o.CapacityType)
		}
		labels := map[string]string{corev1.LabelTopologyZone: o.Zone, v1.CapacityTypeLabelKey: o.CapacityType}
		if o.Reservation != "" {
			cloudprovider.ReservationIDLabel = reservationLabel
			labels[reservationLabel] = o.Reservation
		}
		out.Offerings = append(out.Offerings, &cloudprovider.Offering{
			Price: o.Price + o.DiskPrice + o.NodePrice, Available: available, ReservationCapacity: o.Remaining,
			Requirements: scheduling.NewLabelRequirements(labels),
		})
	}
	for key := range keys {
		if value, has := t.Labels[key]; has {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value))
		} else if values := t.Choices[key]; len(values) > 0 {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...))
		} else {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	out.Requirements.Add(
		scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, t.Name),
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...),
		scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacityTypes...),
	)
	return out, nil
}

func quantities(in map[string]string) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	for name, text := range in {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s: got %q, must be a quantity: %w", name, text, err)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}
