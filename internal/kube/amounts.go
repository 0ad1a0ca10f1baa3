package kube

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// amount returns a quantity in the unit of its resource: milli-cores for cpu,
// whole units (rounded up) for everything else. What does not fit into an int64
// becomes the largest one.
func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if v, ok := q.AsInt64(); ok && -absurd < v && v < absurd/1000 {
		if name == corev1.ResourceCPU {
			return v * 1000
		}
		return v
	}
	limit := int64(math.MaxInt64)
	if name == corev1.ResourceCPU {
		limit /= 1000
	}
	switch {
	case q.CmpInt64(limit) >= 0:
		return math.MaxInt64
	case q.CmpInt64(-limit) <= 0:
		return -math.MaxInt64
	case name == corev1.ResourceCPU:
		return q.MilliValue()
	}
	return q.Value()
}

func amounts(list corev1.ResourceList) fleet.Amounts {
	var a fleet.Amounts
	if len(list) <= 2 { // cpu and memory, or hardly more
		for name, q := range list {
			a.Set(string(name), amount(name, q))
		}
		return a
	}
	for _, name := range slices.Sorted(maps.Keys(list)) { // in the order in which they are kept
		a.Set(string(name), amount(name, list[name]))
	}
	return a
}

// absurd is the amount from which planning could no longer add up safely.
const absurd = 1 << 58

// checkAmounts rejects quantities that are negative or absurdly large.
func checkAmounts(list corev1.ResourceList, field func() string) error {
	sound := true
	for name, q := range list {
		sound = sound && q.Sign() >= 0 && amount(name, q) < absurd
	}
	if sound {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			return fmt.Errorf("%s[%s]: got %s, must not be negative", field(), name, q.String())
		}
		if q := list[name]; amount(name, q) >= absurd {
			return fmt.Errorf("%s[%s]: got %s, which is more than any machine will ever have", field(), name, q.String())
		}
	}
	return nil
}

// ResourceList writes amounts in the units of Kubernetes, and leaves out what is zero and
// the devices of resource claims, which are no resources of Kubernetes.
func ResourceList(r model.Resources, axes model.Axes) corev1.ResourceList {
	out := corev1.ResourceList{}
	for axis, name := range axes {
		v := r.Get(axis)
		switch {
		case v == 0, model.DeviceDriver(name) != "":
		case axis == model.CPU:
			out[corev1.ResourceCPU] = *resource.NewMilliQuantity(v, resource.DecimalSI)
		case axis == model.Memory, axis == model.EphemeralStorage:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(v, resource.BinarySI)
		default:
			out[corev1.ResourceName(name)] = *resource.NewQuantity(v, resource.DecimalSI)
		}
	}
	return out
}
