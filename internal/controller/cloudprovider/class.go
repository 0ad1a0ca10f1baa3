package cloudprovider

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// ClassValue converts a class's spec. Images and version are not in it.
func ClassValue(c *v1beta1.AKSNodeClass) nodeclass.NodeClass {
	s := &c.Spec
	out := nodeclass.NodeClass{
		Name:         c.Name,
		SubnetID:     or(s.VNETSubnetID, ""),
		OSDiskSizeGB: int64(or(s.OSDiskSizeGB, 128)),
		ImageFamily:  or(s.ImageFamily, v1beta1.ImageFamilyUbuntu),
		ImageVersion: or(s.ImageVersion, ""),
		FIPS:         or(s.FIPSMode, v1beta1.FIPSModeDisabled) == v1beta1.FIPSModeFIPS,
		Tags:         s.Tags,
		MaxPods:      int(or(s.MaxPods, 0)),
		LocalDNS:     or(c.Status.LocalDNSState, v1beta1.LocalDNSStateDisabled) == v1beta1.LocalDNSStateEnabled,
	}
	out.LinuxOS, out.LocalDNSProfile = linuxOS(s.LinuxOSConfig), localDNSProfile(s.LocalDNS, out.LocalDNS)
	if s.Security != nil {
		out.EncryptionAtHost = s.Security.EncryptionAtHost
		if t := s.Security.TrustedLaunch; t != nil {
			out.VTPM, out.SecureBoot = or(t.VTPM, false), or(t.SecureBoot, false)
		}
	}
	if s.GPU != nil {
		out.NoGPUDriver = or(s.GPU.Mode, v1beta1.GPUModeDriver) == v1beta1.GPUModeNone
		if s.GPU.Nvidia != nil {
			out.NVIDIAManagement = string(or(s.GPU.Nvidia.ManagementMode, ""))
		}
	}
	if s.ArtifactStreaming != nil {
		out.ArtifactStreaming = or(s.ArtifactStreaming.Enabled, false)
	}
	if k := s.Kubelet; k != nil {
		out.Kubelet = nodeclass.Kubelet{
			CPUManagerPolicy:            or(k.CPUManagerPolicy, ""),
			CPUCFSQuota:                 k.CPUCFSQuota,
			ImageGCHighThresholdPercent: k.ImageGCHighThresholdPercent,
			ImageGCLowThresholdPercent:  k.ImageGCLowThresholdPercent,
			TopologyManagerPolicy:       or(k.TopologyManagerPolicy, ""),
			AllowedUnsafeSysctls:        k.AllowedUnsafeSysctls,
			ContainerLogMaxSize:         or(k.ContainerLogMaxSize, ""),
			ContainerLogMaxFiles:        k.ContainerLogMaxFiles,
			PodPidsLimit:                k.PodPidsLimit,
			FailSwapOn:                  k.FailSwapOn,
			ContainerLogMaxSizeMB:       megabytes(k.ContainerLogMaxSize),
		}
		// Zero is the kubelet's way of saying "default" here, and no valid flag.
		if k.CPUCFSQuotaPeriod.Duration > 0 {
			out.Kubelet.CPUCFSQuotaPeriod = k.CPUCFSQuotaPeriod.Duration.String()
		}
	}
	return out
}

// usableClass is the class with what its status has found out; an error while the
// status does not speak for the present spec.
func usableClass(c *v1beta1.AKSNodeClass) (nodeclass.NodeClass, error) {
	out := ClassValue(c)
	version, err := c.KubernetesVersion()
	if err != nil {
		return out, err
	}
	images, err := c.Images()
	if err != nil {
		return out, err
	}
	out.KubernetesVersion = version
	for _, i := range images {
		image, err := imageValue(i)
		if err != nil {
			return out, fmt.Errorf("AKSNodeClass %q: %w", c.Name, err)
		}
		out.Images = append(out.Images, image)
	}
	return out, nil
}

// imageValue reads an image from the class's status.
func imageValue(i v1beta1.NodeImage) (nodeclass.Image, error) {
	out := nodeclass.Image{ID: i.ID}
	for _, r := range i.Requirements {
		if r.Operator != corev1.NodeSelectorOpIn || len(r.Values) != 1 {
			return out, fmt.Errorf("status.images: image %s has requirement %q, want one value and operator In", i.ID, r.Key)
		}
		switch r.Key {
		case nodeclass.LabelArch:
			out.Arch = r.Values[0]
		case nodeclass.LabelHyperVGeneration:
			generation, err := strconv.Atoi(r.Values[0])
			if err != nil {
				return out, fmt.Errorf("status.images: image %s has hypervisor generation %q, want 1 or 2", i.ID, r.Values[0])
			}
			out.Generation = generation
		}
	}
	if parts := strings.Split(i.ID, "/"); len(parts) >= 3 {
		out.Definition = parts[len(parts)-3]
	}
	return out, nil
}

// imageStatus writes an image into the class's status.
func imageStatus(i nodeclass.Image) v1beta1.NodeImage {
	in := func(key, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	}
	return v1beta1.NodeImage{ID: i.ID, Requirements: []corev1.NodeSelectorRequirement{
		in(nodeclass.LabelArch, i.Arch), in(nodeclass.LabelHyperVGeneration, strconv.Itoa(i.Generation)),
	}}
}

// or is the value behind a pointer, or a default.
func or[T any](p *T, unset T) T {
	if p == nil {
		return unset
	}
	return *p
}
