package instancetype

import (
	"fmt"
	"regexp"
	"strings"
)

// Size is what the name of a VM size says about it. Standard_NC24ads_A100_v4 is
// family N, subfamily C, 24 vCPUs, features ads, accelerator A100, version v4.
type Size struct {
	Family      string // first letter
	Subfamily   string
	CPUs        string
	Constrained string // the smaller number of a size such as E8-2s_v5
	Features    string
	Accelerator string
	Version     string // with its v, empty for the first generation
	Promo       bool
}

// sizePattern follows Azure's published naming convention and the exceptions
// that exist beside it.
var sizePattern = regexp.MustCompile(
	`^([A-Z])([A-Z]?)([A-Z]?)([0-9]+)-?((?:[0-9]+)?)((?:[abcdeiflmnotspPr]+|C+|NP)?)_?(?:(xl_[A-Z]+[0-9]+[A-Z]*|[A-Z]+[0-9]+[A-Z]*)_?)?(_cc_)?(_[0-9]+_)?(_MI300X_)?(_H100_)?((?:[vV][1-9])?)?(_Promo)?$`)

// ParseSize reads a size's name, with or without its tier in front.
func ParseSize(name string) (Size, error) {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "Standard_"), "Basic_")
	// The one size whose constrained count stands where versions do.
	if bare == "M416s_8_v2" {
		return Size{Family: "M", CPUs: "416", Constrained: "8", Features: "s", Version: "v2"}, nil
	}
	m := sizePattern.FindStringSubmatch(bare)
	if m == nil {
		return Size{}, fmt.Errorf("VM size %q does not follow Azure's naming convention", name)
	}
	accelerator := m[7]
	for _, rare := range []string{m[10], m[11]} {
		if accelerator == "" {
			accelerator = strings.Trim(rare, "_")
		}
	}
	return Size{
		Family: m[1], Subfamily: m[2] + m[3], CPUs: m[4], Constrained: m[5], Features: m[6],
		Accelerator: accelerator, Version: strings.ToLower(m[12]), Promo: m[13] != "",
	}, nil
}

// Series names the group of sizes that differ in their number of vCPUs alone:
// Ds_v5, Dpls_v6, NCads_A100_v4.
func (s Size) Series() string {
	name := s.Family + s.Subfamily + s.Features
	if s.Accelerator != "" {
		name += "_" + s.Accelerator
	}
	if s.Version != "" {
		name += "_" + s.Version
	}
	return name
}

// VersionNumber is the version without its v; the first generation, which has
// none in its name, is 1.
func (s Size) VersionNumber() string {
	if s.Version == "" {
		return "1"
	}
	return strings.TrimPrefix(s.Version, "v")
}

// Confidential reports whether the size is a confidential one (DC, EC).
func (s Size) Confidential() bool {
	return (s.Family == "D" || s.Family == "E") && strings.HasPrefix(s.Subfamily, "C")
}

// The vendors of GPUs, as the label sku-gpu-manufacturer has them.
const (
	NVIDIA = "nvidia"
	AMD    = "amd"
)

// GPUVendor tells the vendor of a GPU size's GPUs by its series. Only a few
// series carry AMD's; new series are taken for NVIDIA until they are listed here.
func (s Size) GPUVendor() string {
	switch {
	case strings.HasPrefix(s.Accelerator, "MI"), strings.HasPrefix(strings.ToUpper(s.Accelerator), "V710"):
		return AMD
	case s.Family == "N" && s.Subfamily == "V" && s.Features == "as" && s.Version == "v4":
		return AMD // NVas_v4 has Radeon MI25 and no accelerator in its name
	}
	return NVIDIA
}
