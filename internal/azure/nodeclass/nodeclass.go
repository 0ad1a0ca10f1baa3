// Package nodeclass is azure's own view of an AKSNodeClass: a plain value with
// defaults applied, so that the rooms of azure need no Kubernetes types. The
// CloudProvider port converts the API object into it.
package nodeclass

import (
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
)

// NVIDIAManaged has machines run NVIDIA's device plugin and metrics exporter without a DaemonSet.
const NVIDIAManaged = "Managed"

// Labels by which images say what they run on. They are internal to nap.
const (
	LabelArch             = "kubernetes.io/arch"
	LabelHyperVGeneration = "karpenter.azure.com/sku-hyperv-generation"
)

// Image is an image that machines may run.
type Image struct {
	// ID is the resource id of the version, in a community gallery or a shared one.
	ID string
	// Definition is the image definition, such as 2204gen2containerd.
	Definition string
	// Arch is amd64 or arm64.
	Arch string
	// Generation is the hypervisor generation that the image boots on, 1 or 2.
	Generation int
}

// Runs reports whether a machine of this architecture that offers these
// hypervisor generations can run the image.
func (i Image) Runs(arch string, generations []int) bool {
	return i.Arch == arch && slices.Contains(generations, i.Generation)
}

// Pick returns the first image that the machine can run, and its position.
func Pick(images []Image, arch string, generations []int) (Image, bool) {
	for _, i := range images {
		if i.Runs(arch, generations) {
			return i, true
		}
	}
	return Image{}, false
}

// NodeClass says what machines look like. The zero value of a field is the
// default of the API field, except OSDiskSizeGB, which must be set.
type NodeClass struct {
	Name string
	// SubnetID of the machines' network interfaces; empty means the cluster's.
	SubnetID     string
	OSDiskSizeGB int64
	// ImageFamily is Ubuntu, Ubuntu2204, Ubuntu2404 or AzureLinux.
	ImageFamily string
	// ImageVersion pins the node image, such as 202311.07.0; empty means newest.
	ImageVersion string
	FIPS         bool
	Tags         map[string]string
	// MaxPods per machine; 0 means the network plugin's default.
	MaxPods int
	Kubelet Kubelet
	// LinuxOS and LocalDNSProfile are the kernel's and the DNS cache's settings in
	// AKS's own words; nil where the class has none. AKS machines send them to AKS,
	// plain machines carry them in their boot data.
	LinuxOS         *armcontainerservice.LinuxOSConfig
	LocalDNSProfile *armcontainerservice.LocalDNSProfile
	// EncryptionAtHost is nil where the class does not say.
	EncryptionAtHost *bool
	VTPM, SecureBoot bool
	// NoGPUDriver leaves drivers to a GPU operator (gpu.mode None).
	NoGPUDriver bool
	// NVIDIAManagement is gpu.nvidia.managementMode, NVIDIAManaged among them; empty where
	// the class leaves it to AKS.
	NVIDIAManagement  string
	ArtifactStreaming bool
	// LocalDNS says that machines run a DNS cache (status.localDNSState Enabled).
	LocalDNS bool
	// Images in order of preference, and the version of new machines; empty while
	// they are not resolved.
	Images            []Image
	KubernetesVersion string
}

// TrustedLaunch reports whether either part of trusted launch is on.
func (c *NodeClass) TrustedLaunch() bool { return c.VTPM || c.SecureBoot }

// Kubelet are settings that become kubelet flags. A zero value keeps the
// kubelet's default.
type Kubelet struct {
	CPUManagerPolicy            string
	CPUCFSQuota                 *bool
	CPUCFSQuotaPeriod           string
	ImageGCHighThresholdPercent *int32
	ImageGCLowThresholdPercent  *int32
	TopologyManagerPolicy       string
	AllowedUnsafeSysctls        []string
	ContainerLogMaxSize         string
	ContainerLogMaxSizeMB       int32 // the same in whole MiB, as AKS takes it
	ContainerLogMaxFiles        *int32
	PodPidsLimit                *int64
	FailSwapOn                  *bool
}
