package instancetype

import (
	"math"

	"github.com/nodeautoprovision/nap/internal/model"
)

const (
	mebi = 1 << 20
	gibi = 1 << 30
	giga = 1_000_000_000

	// evictionMemoryMiB is the kubelet's hard eviction threshold, which every
	// machine is started with.
	evictionMemoryMiB = 750
)

// GPUResource is the extended resource of a vendor's GPUs.
func GPUResource(vendor string) string { return vendor + ".com/gpu" }

// Axes are the axes of every catalogue that this package builds.
func Axes() model.Axes { return model.NewAxes(GPUResource(NVIDIA), GPUResource(AMD)) }

// capacity is what a node of the size reports. Memory is less than the size
// promises: the hypervisor and the kernel keep overhead, a fraction, and the
// promise is taken in whole GiB as the provider that users migrate from does, so
// that a fleet can be compared machine by machine, unless exact resources are
// asked for. Axes are [Axes].
func capacity(s *SKU, osDiskSizeGB, maxPods int64, region Region, axes model.Axes) model.Resources {
	out := make(model.Resources, len(axes))
	memory := int64(s.MemoryGiB) * gibi
	if region.ExactResources {
		memory = int64(s.MemoryGiB * gibi)
	}
	out[model.CPU] = s.VCPUs * 1000
	out[model.Memory] = memory - int64(math.Ceil(float64(memory)*region.MemoryOverhead))
	out[model.EphemeralStorage] = osDiskSizeGB * giga
	out[model.Pods] = maxPods
	if s.GPUs > 0 {
		out[axes.Index(GPUResource(s.Size.GPUVendor()))] = s.GPUs
	}
	return out
}

// band is a part of an amount and the share of it that is reserved.
type band struct {
	upTo  float64
	share float64
}

// reserved adds up the shares of an amount over its bands.
func reserved(amount float64, bands []band) float64 {
	total, from := 0.0, 0.0
	for _, b := range bands {
		if amount <= from {
			break
		}
		total += (math.Min(amount, b.upTo) - from) * b.share
		from = b.upTo
	}
	return total
}

// KubeReservedCPU is what the kubelet keeps from pods, in milli-cores: 6 percent
// of the first core, 4 of the second, 2 of the next two, 1 of the rest.
func KubeReservedCPU(vcpus int64) int64 {
	// Whole bands of integers keep 0.06*1000 from becoming 59.
	return int64(math.Round(reserved(float64(vcpus), []band{{1, 60}, {2, 40}, {4, 20}, {math.Inf(1), 10}})))
}

// KubeReservedMemoryMiB is what the kubelet keeps from pods, in MiB: a quarter of
// the first 4 GiB, a fifth of the next 4, a tenth up to 16, 6 percent up to 128,
// 2 percent of the rest.
func KubeReservedMemoryMiB(memoryGiB float64) int64 {
	return int64(reserved(memoryGiB*1024, []band{{4 << 10, 0.25}, {8 << 10, 0.20}, {16 << 10, 0.10}, {128 << 10, 0.06}, {math.Inf(1), 0.02}}))
}

// EvictionMemoryMiB is the kubelet's memory eviction threshold.
func EvictionMemoryMiB() int64 { return evictionMemoryMiB }

// evictionDiskPercent and evictionInodesPercent are the free parts of the disk and of
// its inodes at which kubelets evict by AKS's settings.
const (
	evictionDiskPercent   = 10
	evictionInodesPercent = 5
)

// EvictionDiskPercent is the kubelet's disk eviction threshold.
func EvictionDiskPercent() int64 { return evictionDiskPercent }

// EvictionInodesPercent is the kubelet's eviction threshold of inodes, which pods do
// not ask for and planning does not count.
func EvictionInodesPercent() int64 { return evictionInodesPercent }

// overheadOf is what a node of this capacity keeps from pods: the numbers that its
// kubelet is started with.
func overheadOf(s *SKU, capacity model.Resources) model.Resources {
	out := make(model.Resources, len(capacity))
	out[model.CPU] = KubeReservedCPU(s.VCPUs)
	out[model.Memory] = (KubeReservedMemoryMiB(s.MemoryGiB) + evictionMemoryMiB) * mebi
	out[model.EphemeralStorage] = capacity.Get(model.EphemeralStorage) * evictionDiskPercent / 100
	return out
}
