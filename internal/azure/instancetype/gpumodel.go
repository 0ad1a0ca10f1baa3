package instancetype

import (
	"path"

	"github.com/nodeautoprovision/nap/internal/model"
)

// gpuModel is a product of NVIDIA and the sizes that have it.
type gpuModel struct {
	// sizes is a pattern of names as package path has it.
	sizes string
	// gpu has everything but the count.
	gpu model.GPU
}

// gpuModels are the products whose devices are known: what NVIDIA's drivers list of them
// (nvidia-smi, ResourceSlices of clusters). Sizes that share a GPU among machines (NV) are
// not among them, nor those that are not described yet.
func gpuModels() []gpuModel {
	gib := func(least, most int64, product, architecture, compute string) model.GPU {
		return model.GPU{
			Product: product, Architecture: architecture, ComputeCapability: compute,
			MemoryLeast: least * gibi, MemoryMost: most * gibi,
		}
	}
	return []gpuModel{
		{"Standard_NC*as_T4_v3", gib(15, 16, "Tesla T4", "Turing", "7.5.0")},
		{"Standard_NC*s_v3", gib(15, 16, "Tesla V100-PCIE-16GB", "Volta", "7.0.0")},
		{"Standard_ND40rs_v2", gib(31, 32, "Tesla V100-SXM2-32GB", "Volta", "7.0.0")},
		{"Standard_NC*ads_A100_v4", gib(80, 80, "NVIDIA A100 80GB PCIe", "Ampere", "8.0.0")},
		{"Standard_ND96asr_v4", gib(40, 40, "NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0")},
		{"Standard_ND96amsr_A100_v4", gib(80, 80, "NVIDIA A100-SXM4-80GB", "Ampere", "8.0.0")},
		{"Standard_NC*_H100_v5", gib(93, 94, "NVIDIA H100 NVL", "Hopper", "9.0.0")},
		{"Standard_ND96*_H100_v5", gib(79, 80, "NVIDIA H100 80GB HBM3", "Hopper", "9.0.0")},
		{"Standard_ND96*_H200_v5", gib(140, 141, "NVIDIA H200", "Hopper", "9.0.0")},
	}
}

// gpuOf is what is known of the GPUs of a size, nil where that is not enough.
func gpuOf(s *SKU) *model.GPU {
	if s.GPUs <= 0 || s.Size.GPUVendor() != NVIDIA {
		return nil
	}
	for _, m := range gpuModels() {
		if match, err := path.Match(m.sizes, s.Name); err == nil && match {
			out := m.gpu
			out.Count = s.GPUs
			return &out
		}
	}
	return nil
}
