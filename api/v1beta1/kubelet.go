package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KubeletConfiguration are the kubelet settings that AKS lets users change.
//
// +kubebuilder:validation:XValidation:message="imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",rule="has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ? self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent : true"
type KubeletConfiguration struct {
	// cpuManagerPolicy static gives whole CPUs to Guaranteed pods that ask for them.
	// +kubebuilder:default=none
	// +kubebuilder:validation:Enum={none,static}
	// +optional
	CPUManagerPolicy *string `json:"cpuManagerPolicy,omitempty"`
	// cpuCFSQuota enforces CPU limits.
	// +kubebuilder:default=true
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
	// cpuCFSQuotaPeriod is the period over which CPU limits are enforced, from 1ms to
	// 1s, such as 100ms; 0s leaves it to the kubelet.
	// +kubebuilder:default="100ms"
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:message="cpuCFSQuotaPeriod must be from 1ms to 1s, such as 100ms, or 0s",rule="duration(self) == duration('0s') || duration(self) >= duration('1ms') && duration(self) <= duration('1s')"
	// +kubebuilder:validation:Type=string
	// +optional
	CPUCFSQuotaPeriod metav1.Duration `json:"cpuCFSQuotaPeriod,omitempty"`
	// imageGCHighThresholdPercent of disk usage starts the removal of images.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// imageGCLowThresholdPercent of disk usage ends the removal of images.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// topologyManagerPolicy aligns CPUs and devices by NUMA node.
	// +kubebuilder:default=none
	// +kubebuilder:validation:Enum={restricted,best-effort,none,single-numa-node}
	// +optional
	TopologyManagerPolicy *string `json:"topologyManagerPolicy,omitempty"`
	// allowedUnsafeSysctls are patterns of kernel parameters that pods may set, such
	// as net.core.somaxconn or kernel.msg*.
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.\/-]*\*?$`
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// containerLogMaxSize is the size at which a container's log is rotated.
	// +kubebuilder:default="50Mi"
	// +kubebuilder:validation:Pattern=`^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$`
	// +optional
	ContainerLogMaxSize *string `json:"containerLogMaxSize,omitempty"`
	// containerLogMaxFiles is how many log files a container keeps.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	ContainerLogMaxFiles *int32 `json:"containerLogMaxFiles,omitempty"`
	// podPidsLimit is how many processes a pod may have; -1 means no limit.
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	PodPidsLimit *int64 `json:"podPidsLimit,omitempty"`
	// failSwapOn keeps the kubelet from starting on a machine with swap. It must
	// be false when linuxOSConfig.swapFileSize is set.
	// +optional
	FailSwapOn *bool `json:"failSwapOn,omitempty"`
}
