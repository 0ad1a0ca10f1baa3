package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/nodeautoprovision/nap/internal/fleet"
)

// slice converts a ResourceSlice. Devices that are not one node's are not planned.
func (r *Reader) slice(s *resourcev1.ResourceSlice) *fleet.DeviceSlice {
	out := &fleet.DeviceSlice{
		Name: s.Name, Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name,
		Generation: s.Spec.Pool.Generation, Slices: s.Spec.Pool.ResourceSliceCount,
	}
	if s.Spec.NodeName == nil {
		return out
	}
	out.Node = *s.Spec.NodeName
	for i := range s.Spec.Devices {
		if d := &s.Spec.Devices[i]; countable(d) {
			out.Devices = append(out.Devices, fleet.Device{
				DeviceID: fleet.DeviceID{Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: d.Name},
				Traits:   r.listed(s.Spec.Driver, d),
			})
		}
	}
	return out
}

// countable reports whether a device is there for one claim alone, as it is: it is neither
// cut from another nor shared, and nothing repels claims from it.
func countable(d *resourcev1.Device) bool {
	return len(d.ConsumesCounters) == 0 && (d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations) &&
		len(d.Taints) == 0 && len(d.BindingConditions) == 0 && d.NodeName == nil && d.NodeSelector == nil && d.AllNodes == nil
}

// listed are the traits of a device that its driver lists: all is known.
func (r *Reader) listed(driver string, d *resourcev1.Device) *traits {
	return &traits{
		compiled: r.compiled,
		forms:    []cel.Device{{Driver: driver, Attributes: d.Attributes, Capacity: d.Capacity}},
	}
}
