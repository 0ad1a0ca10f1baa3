package instancetype

import (
	"fmt"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Exclusion says why a size that the region has is not in the catalogue.
type Exclusion struct {
	Size   string
	Reason string
}

// check is one reason for leaving a size out; it returns "" to keep it.
type check func(s *SKU, class *nodeclass.NodeClass) string

// checks are asked in this order, and the first objection counts: what AKS
// never runs on, then what this subscription may not use, then what the class
// rules out.
func checks() []check {
	return []check{nameIsReadable, aksAccepts, subscriptionMayUse, isOrdinary, hasImage, securityAllows, gpuRuns, gpuAllows, featuresAllow}
}

func exclude(s *SKU, class *nodeclass.NodeClass) string {
	for _, c := range checks() {
		if reason := c(s, class); reason != "" {
			return reason
		}
	}
	return ""
}

func nameIsReadable(s *SKU, _ *nodeclass.NodeClass) string {
	if s.SizeErr != nil {
		return s.SizeErr.Error()
	}
	if s.Arch == "" {
		return "Azure does not say which CPU architecture it has"
	}
	return ""
}

// aksRestricted are sizes that AKS refuses although they are large enough, or
// that the size check below would let through.
func aksRestricted(name string) bool {
	switch name {
	case "Standard_A0", "Standard_A1", "Standard_A1_v2", "Standard_B1s", "Standard_B1ms", "Standard_F1", "Standard_F1s",
		"Standard_E64i_v3", "Standard_E64is_v3":
		return true
	}
	return strings.HasPrefix(name, "Basic_A")
}

func aksAccepts(s *SKU, _ *nodeclass.NodeClass) string {
	switch {
	case aksRestricted(s.Name):
		return "AKS does not allow it"
	case s.VCPUs < 2:
		return fmt.Sprintf("AKS needs at least 2 vCPUs, it has %d", s.VCPUs)
	case s.MemoryGiB < 3.5:
		return fmt.Sprintf("AKS needs at least 3.5 GiB of memory, it has %g", s.MemoryGiB)
	}
	return ""
}

func subscriptionMayUse(s *SKU, _ *nodeclass.NodeClass) string {
	if s.Restricted {
		return "the subscription may not use it in this region"
	}
	return ""
}

func isOrdinary(s *SKU, _ *nodeclass.NodeClass) string {
	switch {
	case s.Size.Constrained != "":
		return "sizes with constrained vCPUs are not bought"
	case s.Confidential:
		return "confidential sizes are not bought"
	}
	return ""
}

func hasImage(s *SKU, class *nodeclass.NodeClass) string {
	if len(class.Images) == 0 {
		return ""
	}
	if _, ok := nodeclass.Pick(class.Images, s.Arch, s.Generations); !ok {
		return fmt.Sprintf("no image of family %s runs on %s with hypervisor generations %v", class.ImageFamily, s.Arch, s.Generations)
	}
	return ""
}

func securityAllows(s *SKU, class *nodeclass.NodeClass) string {
	if class.EncryptionAtHost != nil && *class.EncryptionAtHost && !s.EncryptionAtHost {
		return "it does not support encryption at host"
	}
	if !class.TrustedLaunch() {
		return ""
	}
	for _, g := range s.Generations {
		if g == 2 && !s.TrustedLaunchDisabled {
			return ""
		}
	}
	return "it does not support trusted launch"
}

func gpuAllows(s *SKU, class *nodeclass.NodeClass) string {
	if s.GPUs > 0 && !class.NoGPUDriver && s.Size.GPUVendor() == AMD {
		return "no driver is installed for AMD GPUs; set gpu.mode None to bring your own"
	}
	return ""
}

func featuresAllow(s *SKU, class *nodeclass.NodeClass) string {
	if class.ArtifactStreaming && s.Arch == "arm64" {
		return "artifact streaming does not run on arm64"
	}
	if class.LocalDNS && (s.VCPUs < 4 || s.MemoryGiB*1024 < 244) {
		return "LocalDNS needs at least 4 vCPUs and 244 MiB"
	}
	return ""
}
