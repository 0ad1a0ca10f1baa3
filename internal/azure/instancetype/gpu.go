package instancetype

import (
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// gpuRuns says why AKS does not run a GPU size with the operating system of a
// class, or "": Ubuntu runs all of them, Azure Linux has no driver for some series.
// What is newer than this list is let pass.
func gpuRuns(s *SKU, class *nodeclass.NodeClass) string {
	if s.GPUs == 0 || class.ImageFamily != "AzureLinux" {
		return ""
	}
	if noAzureLinux(s.Size) {
		return "AKS does not run its GPUs with Azure Linux; use imageFamily Ubuntu"
	}
	second := func(i nodeclass.Image) bool { return strings.HasPrefix(i.Definition, "V2") }
	if fromAzureLinux3(s.Size) && slices.ContainsFunc(class.Images, second) {
		return "AKS runs its GPUs with Azure Linux from version 3 on, which comes with Kubernetes 1.32; use imageFamily Ubuntu"
	}
	return ""
}

// noAzureLinux are the series whose GPUs Azure Linux has no driver for.
func noAzureLinux(s Size) bool {
	if s.Family != "N" {
		return false
	}
	switch s.Accelerator {
	case "":
		// The first generations name no accelerator: of NC the third runs, of ND
		// those after the first.
		return s.Subfamily == "V" || s.Subfamily == "C" && s.Version != "v3" || s.Subfamily == "D" && s.Version == ""
	case "A10", "GB200", "GB300", "V710", "MI300X":
		return true
	}
	return strings.Contains(strings.ToUpper(s.Accelerator), "RTXPRO6000")
}

// fromAzureLinux3 are the series that Azure Linux 2 has no driver for.
func fromAzureLinux3(s Size) bool {
	switch s.Accelerator {
	case "A100", "H100", "H200":
		return true
	}
	return s.Subfamily == "D" && s.Accelerator == "" && s.Version == "v4"
}
