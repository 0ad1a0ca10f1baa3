package aksmachine

import (
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

const prioritySpot = "Spot"

// body is what AKS is told about the machine.
func (a *Launcher) body(spec launch.NodeSpec) (machine, error) {
	c := spec.Class
	sku, err := osSKU(c)
	if err != nil {
		return machine{}, err
	}
	m := machine{Properties: properties{
		described: described{
			NodeImageVersion: image.NodeImageVersion(spec.Image.ID), Priority: "Regular", Tags: a.tags(spec),
			Hardware: hardware{VMSize: spec.SKU.Name, UltraSSDEnabled: spec.UltraSSD},
		},
		Mode: "User",
		OperatingSystem: operatingSystem{
			OSType: "Linux", OSSKU: sku, OSDiskSizeGB: c.OSDiskSizeGB, OSDiskType: "Managed", EnableFIPS: c.FIPS,
		},
		Kubernetes: kubernetes{
			NodeLabels: nodeLabels(spec.Labels), OrchestratorVersion: strings.TrimPrefix(c.KubernetesVersion, "v"),
			KubeletConfig:            kubeletConfig(&c.Kubelet),
			NodeInitializationTaints: launch.RegisterTaints(spec.Taints), NodeTaints: []string{}, MaxPods: spec.MaxPods,
		},
		Security: security{
			SSHAccess: "LocalUser", EnableVTPM: c.VTPM, EnableSecureBoot: c.SecureBoot,
			EnableEncryptionAtHost: c.EncryptionAtHost != nil && *c.EncryptionAtHost,
		},
	}}
	p := &m.Properties
	if spec.Zone != "" {
		m.Zones = []string{spec.Zone}
	}
	if spec.Labels[instancetype.LabelAKSMode] == "system" {
		p.Mode = "System"
	}
	if spec.CapacityType == model.Spot {
		p.Priority = prioritySpot
	}
	// Without a subnet of the class, AKS takes the pool's.
	if c.SubnetID != "" {
		p.Network = &network{VnetSubnetID: c.SubnetID}
	}
	if spec.SKU.HoldsOSDisk(c.OSDiskSizeGB) {
		p.OperatingSystem.OSDiskType = "Ephemeral"
	}
	if spec.SKU.GPUs > 0 {
		p.Hardware.GPUProfile = gpus(spec)
	}
	if c.ArtifactStreaming {
		p.Kubernetes.ArtifactStreaming = &enabled{true}
	}
	if c.LinuxOS != nil {
		p.OperatingSystem.LinuxProfile = &linuxProfile{c.LinuxOS}
	}
	p.LocalDNSProfile = c.LocalDNSProfile
	return m, nil
}

// gpus is what AKS does for the GPUs of a machine. Without a driver it manages nothing, and
// would refuse a request for it.
func gpus(spec launch.NodeSpec) *gpuProfile {
	c := spec.Class
	if c.NoGPUDriver {
		return &gpuProfile{Driver: "None"}
	}
	p := &gpuProfile{Driver: "Install"}
	if c.NVIDIAManagement != "" && spec.SKU.Size.GPUVendor() == instancetype.NVIDIA {
		p.NVIDIA = &nvidiaProfile{ManagementMode: c.NVIDIAManagement}
	}
	return p
}

// osSKU is AKS's word for the operating system of the class.
func osSKU(c *nodeclass.NodeClass) (string, error) {
	release, err := image.ReleaseFor(c, c.KubernetesVersion)
	if err != nil {
		return "", err
	}
	switch {
	case strings.HasPrefix(release.Name, "AzureLinux"):
		return "AzureLinux", nil
	case c.FIPS:
		return "Ubuntu", nil
	}
	return release.Name, nil
}

// nodeLabels are the labels that AKS takes: it writes its own, and those of the
// cloud node manager, itself.
func nodeLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		domain, _, _ := strings.Cut(key, "/")
		if domain == "kubernetes.azure.com" || slices.Contains(legacyLabels(), key) {
			continue
		}
		if !bootstrap.MayLabelItself(key) || bootstrap.WellKnownLabel(key) {
			continue
		}
		out[key] = value
	}
	return out
}

// legacyLabels are those of AKS that are older than its label domain.
func legacyLabels() []string {
	return []string{"agentpool", "storageprofile", "storagetier", "accelerator"}
}

// kubeletConfig are the kubelet settings of the node class, as AKS takes them;
// nil where none is set.
func kubeletConfig(k *nodeclass.Kubelet) *armcontainerservice.KubeletConfig {
	out := armcontainerservice.KubeletConfig{
		CPUCfsQuota: k.CPUCFSQuota, ImageGcHighThreshold: k.ImageGCHighThresholdPercent, ImageGcLowThreshold: k.ImageGCLowThresholdPercent,
		ContainerLogMaxFiles: k.ContainerLogMaxFiles, FailSwapOn: k.FailSwapOn,
		CPUManagerPolicy: set(k.CPUManagerPolicy), CPUCfsQuotaPeriod: set(k.CPUCFSQuotaPeriod),
		TopologyManagerPolicy: set(k.TopologyManagerPolicy),
	}
	for _, name := range k.AllowedUnsafeSysctls {
		out.AllowedUnsafeSysctls = append(out.AllowedUnsafeSysctls, to.Ptr(name))
	}
	if k.PodPidsLimit != nil {
		out.PodMaxPids = to.Ptr(int32(*k.PodPidsLimit)) //nolint:gosec // no class with more gets ready
	}
	if k.ContainerLogMaxSizeMB > 0 {
		out.ContainerLogMaxSizeMB = to.Ptr(k.ContainerLogMaxSizeMB)
	}
	if reflect.ValueOf(out).IsZero() {
		return nil
	}
	return &out
}

// set is a pointer to a text, nil for none.
func set(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
