package kubelet

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/nodeautoprovision/nap/internal/armsim/kubelet/kubeletflags"
)

// DefaultMemoryOverhead is the share of a size's memory that firmware and
// kernel keep, as the provider for Azure assumes it.
const DefaultMemoryOverhead = 0.075

// capacity is what the node has. GPUs count only once a device plugin has
// announced them.
func capacity(m Machine, maxPods int64, overhead float64, gpusFound bool) corev1.ResourceList {
	memory := m.MemoryBytes - int64(math.Ceil(float64(m.MemoryBytes)*overhead))
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(m.VCPUs, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(m.OSDiskGB*1e9, resource.DecimalSI),
		corev1.ResourcePods:             *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	if m.GPUs > 0 && gpusFound {
		list[gpuResource(m.GPUVendor)] = *resource.NewQuantity(m.GPUs, resource.DecimalSI)
	}
	return list
}

// allocatable is what is left for pods: capacity less the reservations and the
// hard eviction thresholds, never below zero.
func allocatable(capacity corev1.ResourceList, f kubeletflags.Flags) corev1.ResourceList {
	left := capacity.DeepCopy()
	take := func(name corev1.ResourceName, q resource.Quantity) {
		v, ok := left[name]
		if !ok {
			return
		}
		v.Sub(q)
		if v.Sign() < 0 {
			v.Set(0)
		}
		left[name] = v
	}
	for _, reserved := range []corev1.ResourceList{f.KubeReserved, f.SystemReserved} {
		for name, q := range reserved {
			take(name, q)
		}
	}
	memory, disk := capacity[corev1.ResourceMemory], capacity[corev1.ResourceEphemeralStorage]
	take(corev1.ResourceMemory, *resource.NewQuantity(f.EvictionMemory.Of(memory.Value()), resource.BinarySI))
	take(corev1.ResourceEphemeralStorage, *resource.NewQuantity(f.EvictionDisk.Of(disk.Value()), resource.DecimalSI))
	return left
}

// gpuResource is the extended resource of a vendor's device plugin, empty for
// an unknown vendor.
func gpuResource(vendor string) corev1.ResourceName {
	switch vendor {
	case "nvidia", "amd":
		return corev1.ResourceName(vendor + ".com/gpu")
	}
	return ""
}
