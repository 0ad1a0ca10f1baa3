package launch

import (
	"reflect"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

const prioritySpot = "Spot"

// body is what AKS is told about the machine.
func (a *AKSMachines) body(spec NodeSpec) (aksMachine, error) {
	c := spec.Class
	sku, err := osSKU(c)
	if err != nil {
		return aksMachine{}, err
	}
	m := aksMachine{Properties: aksProperties{
		NodeImageVersion: image.NodeImageVersion(spec.Image.ID), Mode: "User", Priority: "Regular", Tags: a.tags(spec),
		Hardware: aksHardware{VMSize: spec.SKU.Name, UltraSSDEnabled: spec.UltraSSD},
		OperatingSystem: aksSystem{
			OSType: "Linux", OSSKU: sku, OSDiskSizeGB: c.OSDiskSizeGB, OSDiskType: "Managed", EnableFIPS: c.FIPS,
		},
		Kubernetes: aksKubernetes{
			NodeLabels: aksLabels(spec.Labels), OrchestratorVersion: strings.TrimPrefix(c.KubernetesVersion, "v"),
			KubeletConfig:            kubeletConfig(&c.Kubelet),
			NodeInitializationTaints: taintFlags(spec.Taints), NodeTaints: []string{}, MaxPods: spec.MaxPods,
		},
		Security: aksSecurity{
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
		p.Network = &aksNetwork{VnetSubnetID: c.SubnetID}
	}
	if spec.SKU.EphemeralDisk.GB >= c.OSDiskSizeGB {
		p.OperatingSystem.OSDiskType = "Ephemeral"
	}
	if spec.SKU.GPUs > 0 {
		p.Hardware.GPUProfile = &aksGPUProfile{Driver: "Install"}
		if c.NoGPUDriver {
			p.Hardware.GPUProfile.Driver = "None"
		}
	}
	if c.ArtifactStreaming {
		p.Kubernetes.ArtifactStreaming = &aksEnabled{true}
	}
	if c.LinuxOS != nil {
		p.OperatingSystem.LinuxProfile = &aksLinuxProfile{c.LinuxOS}
	}
	p.LocalDNSProfile = c.LocalDNSProfile
	return m, nil
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

// aksLabels are the labels that AKS takes: it writes its own, and those of the
// cloud node manager, itself.
func aksLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		domain, _, _ := strings.Cut(key, "/")
		if domain == "kubernetes.azure.com" || slices.Contains(legacyLabels(), key) || !mayLabelItself(key) || wellKnown(key) {
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
