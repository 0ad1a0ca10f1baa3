package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/model"
)

// GPUDriver is NVIDIA's driver for whole GPUs.
const GPUDriver = "gpu.nvidia.com"

// OfGPU describes a GPU as NVIDIA's driver will list it
// (kubernetes-sigs/dra-driver-nvidia-gpu): those of its attributes that depend on the
// product alone.
func (r *Reader) OfGPU(g *model.GPU) fleet.Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.gpus[*g]; ok {
		return known
	}
	attributes := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"type":                  {StringValue: new("gpu")},
		"productName":           {StringValue: &g.Product},
		"architecture":          {StringValue: &g.Architecture},
		"cudaComputeCapability": {VersionValue: &g.ComputeCapability},
	}
	t := &traits{compiled: r.compiled, partial: true}
	for _, memory := range []int64{g.MemoryLeast, g.MemoryMost} {
		t.forms = append(t.forms, cel.Device{
			Driver: GPUDriver, Attributes: attributes,
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: *resource.NewQuantity(memory, resource.BinarySI)},
			},
		})
	}
	out := fleet.Device{DeviceID: fleet.DeviceID{Driver: GPUDriver}, Traits: t}
	r.gpus[*g] = out
	return out
}
