package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AKSNodeClass says what the machines of a NodePool look like on Azure.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=aksnodeclasses,scope=Cluster,categories={karpenter,nap},shortName={aksnc,aksncs}
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="ImageFamily",type="string",JSONPath=".spec.imageFamily",priority=1
// +kubebuilder:subresource:status
type AKSNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AKSNodeClassSpec   `json:"spec,omitempty"`
	Status AKSNodeClassStatus `json:"status,omitempty"`
}

// AKSNodeClassList is a list of AKSNodeClasses.
//
// +kubebuilder:object:root=true
type AKSNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AKSNodeClass `json:"items"`
}

// The image families.
const (
	ImageFamilyUbuntu     = "Ubuntu"
	ImageFamilyUbuntu2204 = "Ubuntu2204"
	ImageFamilyUbuntu2404 = "Ubuntu2404"
	ImageFamilyAzureLinux = "AzureLinux"
)

// FIPSMode says whether the machines run FIPS validated cryptography.
//
// +kubebuilder:validation:Enum={FIPS,Disabled}
type FIPSMode string

// The FIPS modes.
const (
	FIPSModeFIPS     FIPSMode = "FIPS"
	FIPSModeDisabled FIPSMode = "Disabled"
)

// GPUMode says who installs GPU drivers.
//
// +kubebuilder:validation:Enum={Driver,None}
type GPUMode string

// The GPU modes.
const (
	GPUModeDriver GPUMode = "Driver"
	GPUModeNone   GPUMode = "None"
)

// ManagementMode says who brings what NVIDIA's GPUs need beside their driver.
//
// +kubebuilder:validation:Enum={Managed,Unmanaged}
type ManagementMode string

// The management modes.
const (
	ManagementModeManaged   ManagementMode = "Managed"
	ManagementModeUnmanaged ManagementMode = "Unmanaged"
)

// AKSNodeClassSpec is what users ask for. Every field but Tags is part of the
// hash: changing it replaces the machines, at the pace of the NodePool's
// disruption budgets. The hash depends on names, types and order of the fields,
// which are upstream's: a fleet that moves to nap or away from it does not drift.
//
// +kubebuilder:validation:XValidation:message="FIPS is not yet supported for Ubuntu2404",rule="has(self.fipsMode) && self.fipsMode == 'FIPS' ? (has(self.imageFamily) && self.imageFamily != 'Ubuntu2404') : true"
// +kubebuilder:validation:XValidation:message="TrustedLaunch is required for FIPS support with Ubuntu2204: set security.trustedLaunch.vtpm or secureBoot",rule="has(self.fipsMode) && self.fipsMode == 'FIPS' ? (has(self.imageFamily) && (self.imageFamily != 'Ubuntu2204' || (has(self.security) && has(self.security.trustedLaunch) && ((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot))))) : true"
// +kubebuilder:validation:XValidation:message="TrustedLaunch with fipsMode FIPS is only supported for imageFamily Ubuntu and Ubuntu2204",rule="has(self.fipsMode) && self.fipsMode == 'FIPS' && has(self.security) && has(self.security.trustedLaunch) && ((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot)) ? (!has(self.imageFamily) || self.imageFamily in ['Ubuntu','Ubuntu2204']) : true"
// +kubebuilder:validation:XValidation:message="kubelet.failSwapOn must be set to false when linuxOSConfig.swapFileSize is specified",rule="has(self.linuxOSConfig) && has(self.linuxOSConfig.swapFileSize) ? (has(self.kubelet) && has(self.kubelet.failSwapOn) && !self.kubelet.failSwapOn) : true"
type AKSNodeClassSpec struct {
	// vnetSubnetID is the subnet of the machines' network interfaces. Unset means
	// the cluster's own subnet. It must lie in the cluster's virtual network.
	// +kubebuilder:validation:Pattern=`(?i)^\/subscriptions\/[^\/]+\/resourceGroups\/[a-zA-Z0-9_\-().]{0,89}[a-zA-Z0-9_\-()]\/providers\/Microsoft\.Network\/virtualNetworks\/[^\/]+\/subnets\/[^\/]+$`
	// +optional
	VNETSubnetID *string `json:"vnetSubnetID,omitempty"`

	// osDiskSizeGB is the size of the operating system disk in GB.
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=2048
	// +optional
	OSDiskSizeGB *int32 `json:"osDiskSizeGB,omitempty"`

	// imageFamily is the operating system. Ubuntu and AzureLinux mean the release
	// that AKS pairs with the cluster's Kubernetes version.
	// +kubebuilder:default=Ubuntu
	// +kubebuilder:validation:Enum={Ubuntu,Ubuntu2204,Ubuntu2404,AzureLinux}
	// +optional
	ImageFamily *string `json:"imageFamily,omitempty"`

	// imageVersion pins the node image to one release, such as 202311.07.0: the
	// date part of AKSUbuntu-2204-202311.07.0 in the AKS release notes. Unset
	// means the newest; removing it returns to the newest.
	// +kubebuilder:validation:Pattern=`^[0-9]{6}\.[0-9]{1,2}\.[0-9]+$`
	// +optional
	ImageVersion *string `json:"imageVersion,omitempty"`

	// fipsMode FIPS runs images with FIPS validated cryptography.
	// +optional
	FIPSMode *FIPSMode `json:"fipsMode,omitempty"`

	// tags are put on every Azure resource of the machines. A "/" in a key becomes
	// "_". Changing them updates the machines in place.
	// +kubebuilder:validation:XValidation:message="tags keys must be at most 512 characters",rule="self.all(k, size(k) <= 512)"
	// +kubebuilder:validation:XValidation:message="tags keys must not contain '<', '>', '%', '&', or '?'",rule="self.all(k, !k.matches('[<>%&?]'))"
	// +kubebuilder:validation:XValidation:message="tags keys must not contain '\\'",rule="self.all(k, !k.contains('\\\\'))"
	// +kubebuilder:validation:XValidation:message="tags values must be at most 256 characters",rule="self.all(k, size(self[k]) <= 256)"
	// +optional
	Tags map[string]string `json:"tags,omitempty" hash:"ignore"`

	// kubelet settings of the machines.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`

	// maxPods is how many pods a machine may run. Unset means 250 with overlay
	// networking and without a network plugin, 30 when pods take addresses of the
	// node subnet, 110 otherwise.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=250
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`

	// security settings of the machines.
	// +optional
	Security *Security `json:"security,omitempty"`

	// localDNS runs a DNS cache on every machine.
	// +optional
	LocalDNS *LocalDNS `json:"localDNS,omitempty"`

	// gpu settings of the machines.
	// +optional
	GPU *GPU `json:"gpu,omitempty"`

	// artifactStreaming loads container images while containers already run.
	// +optional
	ArtifactStreaming *ArtifactStreaming `json:"artifactStreaming,omitempty"`

	// linuxOSConfig sets swap, huge pages and kernel parameters.
	// +optional
	LinuxOSConfig *LinuxOSConfiguration `json:"linuxOSConfig,omitempty"`
}

// Security settings of the machines.
type Security struct {
	// encryptionAtHost encrypts temporary disks and disk caches too. Only sizes
	// that support it are bought.
	// +optional
	EncryptionAtHost *bool `json:"encryptionAtHost,omitempty"`
	// trustedLaunch protects the boot chain. Only generation 2 sizes that support
	// it are bought.
	// +optional
	TrustedLaunch *TrustedLaunch `json:"trustedLaunch,omitempty"`
}

// TrustedLaunch is on when either of its parts is.
type TrustedLaunch struct {
	// vtpm gives the machine a virtual TPM.
	// +optional
	VTPM *bool `json:"vtpm,omitempty"`
	// secureBoot lets the machine boot signed code only.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`
}

// GPU settings of the machines.
//
// +kubebuilder:validation:XValidation:message="gpu.nvidia.managementMode Managed needs the driver that mode Driver installs: leave gpu.mode out, or set managementMode to Unmanaged",rule="has(self.nvidia) && has(self.nvidia.managementMode) && self.nvidia.managementMode == 'Managed' ? (!has(self.mode) || self.mode == 'Driver') : true"
type GPU struct {
	// mode Driver installs NVIDIA drivers at boot and buys only sizes for which
	// that works; None installs nothing, for clusters with a GPU operator.
	// +kubebuilder:default=Driver
	// +optional
	Mode *GPUMode `json:"mode,omitempty"`
	// nvidia has what concerns NVIDIA's GPUs alone; machines without them ignore it.
	// +optional
	Nvidia *NvidiaGPU `json:"nvidia,omitempty"`
}

// NvidiaGPU has the settings of NVIDIA's GPUs.
type NvidiaGPU struct {
	// managementMode Managed installs NVIDIA's device plugin and the exporter of GPU metrics
	// (DCGM) at boot, so that no DaemonSet has to; Unmanaged leaves both to you. Unset
	// means what AKS does without it: Unmanaged.
	// +optional
	ManagementMode *ManagementMode `json:"managementMode,omitempty"`
}

// ArtifactStreaming loads container images while containers already run.
type ArtifactStreaming struct {
	// enabled turns it on; arm64 sizes are then left out. Unset means false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// IsTrustedLaunch reports whether either part of trusted launch is on.
func (s *AKSNodeClassSpec) IsTrustedLaunch() bool {
	if s.Security == nil || s.Security.TrustedLaunch == nil {
		return false
	}
	t := s.Security.TrustedLaunch
	return (t.VTPM != nil && *t.VTPM) || (t.SecureBoot != nil && *t.SecureBoot)
}
