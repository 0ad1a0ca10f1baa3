package instancetype

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

func TestGPUSizesByOperatingSystem(t *testing.T) {
	const all, third, ubuntu = "Ubuntu, Azure Linux 2 and 3", "Ubuntu and Azure Linux 3", "Ubuntu"
	for name, want := range map[string]string{
		"Standard_NC4as_T4_v3": all, "Standard_NC6s_v3": all, "Standard_NC24rs_v3": all, "Standard_ND40rs_v2": all, "Standard_ND40s_v3": all,
		"Standard_NC24ads_A100_v4": third, "Standard_NC40ads_H100_v5": third, "Standard_NC80adis_H100_v5": third, "Standard_ND96asr_v4": third,
		"Standard_ND96amsr_A100_v4": third, "Standard_ND96ams_v4": third, "Standard_ND96isr_H100_v5": third, "Standard_ND96isr_H200_v5": third,
		"Standard_NC6": ubuntu, "Standard_NC24r": ubuntu, "Standard_NC6s_v2": ubuntu, "Standard_NC8ads_A10_v4": ubuntu, "Standard_ND6s": ubuntu,
		"Standard_NV6": ubuntu, "Standard_NV12s_v3": ubuntu, "Standard_NV36ads_A10_v5": ubuntu, "Standard_ND128isr_GB300_v6": ubuntu,
		"Standard_NC128lds_xl_RTXPRO6000BSE_v6": ubuntu, "Standard_NV4ads_V710_v5": ubuntu, "Standard_ND96isr_MI300X_v5": ubuntu,
		"Standard_ND96is_B300_v9": all, // newer than any list
	} {
		s := sku(name, 24, 220, func(s *SKU) { s.GPUs = 1 })
		if s.SizeErr != nil {
			t.Errorf("%s: %v", name, s.SizeErr)
			continue
		}
		runs := func(family, definition string) bool {
			class := &nodeclass.NodeClass{ImageFamily: family, Images: []nodeclass.Image{{Definition: definition, Arch: "amd64", Generation: 2}}}
			return gpuRuns(&s, class) == ""
		}
		got := "none"
		switch [3]bool{runs("Ubuntu", "2404gen2containerd"), runs("AzureLinux", "V2gen2"), runs("AzureLinux", "V3gen2")} {
		case [3]bool{true, true, true}:
			got = all
		case [3]bool{true, false, true}:
			got = third
		case [3]bool{true, false, false}:
			got = ubuntu
		}
		if got != want {
			t.Errorf("%s runs with %s, want %s", name, got, want)
		}
	}
	plain := sku("Standard_D4s_v5", 4, 16)
	if why := gpuRuns(&plain, &nodeclass.NodeClass{ImageFamily: "AzureLinux"}); why != "" {
		t.Errorf("a size without GPUs: %s", why)
	}
}

func TestGPUSizesAfterMoveToAzureLinux3(t *testing.T) {
	c := newCatalog(&market{price: 1}, sku("Standard_NC24ads_A100_v4", 24, 220, func(s *SKU) { s.GPUs = 1 }))
	for _, step := range []struct {
		definition string
		sold       int
	}{{"V2gen2", 0}, {"V3gen2", 1}, {"V2gen2", 0}} {
		class := class()
		class.ImageFamily, class.Images = "AzureLinux", []nodeclass.Image{{Definition: step.definition, Arch: "amd64", Generation: 2}}
		if built := c.For(class); len(built.Catalog.InstanceTypes) != step.sold {
			t.Errorf("with %s sold are %d sizes, left out %v; want %d", step.definition, len(built.Catalog.InstanceTypes), built.Excluded, step.sold)
		}
	}
}

// TestKnownGPUsOfSizes: products are told by the whole name of a size.
func TestKnownGPUsOfSizes(t *testing.T) {
	for name, want := range map[string]string{
		"Standard_NC4as_T4_v3": "Tesla T4", "Standard_NC64as_T4_v3": "Tesla T4", "Standard_NC6s_v3": "Tesla V100-PCIE-16GB",
		"Standard_NC24rs_v3": "Tesla V100-PCIE-16GB", "Standard_ND40rs_v2": "Tesla V100-SXM2-32GB",
		"Standard_NC24ads_A100_v4": "NVIDIA A100 80GB PCIe", "Standard_ND96asr_v4": "NVIDIA A100-SXM4-40GB",
		"Standard_ND96amsr_A100_v4": "NVIDIA A100-SXM4-80GB", "Standard_NC80adis_H100_v5": "NVIDIA H100 NVL",
		"Standard_ND96isr_H100_v5": "NVIDIA H100 80GB HBM3", "Standard_ND96isr_H200_v5": "NVIDIA H200",
		"Standard_NV36ads_A10_v5": "", "Standard_NV12s_v3": "", "Standard_ND96isr_MI300X_v5": "", "Standard_NC6s_v2": "", "Standard_D4s_v5": "",
	} {
		size, err := ParseSize(name)
		if err != nil {
			t.Fatal(err)
		}
		gpus := int64(2)
		if size.Family != "N" {
			gpus = 0
		}
		got := gpuOf(&SKU{Name: name, Size: size, GPUs: gpus})
		if (got == nil) != (want == "") || got != nil && (got.Product != want || got.Count != gpus) {
			t.Errorf("%s has %+v, want %q", name, got, want)
		}
	}
}

func TestPageOfPodsHasEveryGPU(t *testing.T) {
	page, err := os.ReadFile("../../../docs/pods.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range gpuModels() {
		memory := fmt.Sprintf("%d GiB", m.gpu.MemoryMost/gibi)
		if m.gpu.MemoryLeast != m.gpu.MemoryMost {
			memory = fmt.Sprintf("%d to %s", m.gpu.MemoryLeast/gibi, memory)
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s |", m.sizes, m.gpu.Product, m.gpu.Architecture, memory)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/pods.md lacks the row %s", row)
		}
	}
}
