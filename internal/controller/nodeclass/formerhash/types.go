package formerhash

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// The types of the spec as they were. The hash covers their names and the names, types and
// order of their fields, so that none of that may be changed here; what the fields mean stands
// at the types of today.

// AKSNodeClassSpec is the whole spec.
type AKSNodeClassSpec struct {
	VNETSubnetID      *string                    `json:"vnetSubnetID,omitempty"`
	OSDiskSizeGB      *int32                     `json:"osDiskSizeGB,omitempty"`
	ImageFamily       *string                    `json:"imageFamily,omitempty"`
	ImageVersion      *string                    `json:"imageVersion,omitempty"`
	FIPSMode          *v1beta1.FIPSMode          `json:"fipsMode,omitempty"`
	Tags              map[string]string          `json:"tags,omitempty" hash:"ignore"`
	Kubelet           *KubeletConfiguration      `json:"kubelet,omitempty"`
	MaxPods           *int32                     `json:"maxPods,omitempty"`
	Security          *v1beta1.Security          `json:"security,omitempty"`
	GPU               *v1beta1.GPU               `json:"gpu,omitempty"`
	ArtifactStreaming *v1beta1.ArtifactStreaming `json:"artifactStreaming,omitempty"`
	LocalDNS          *LocalDNS                  `json:"localDNS,omitempty"`
	LinuxOSConfig     *LinuxOSConfig             `json:"linuxOSConfig,omitempty"`
}

// KubeletConfiguration is spec.kubelet.
type KubeletConfiguration struct {
	CPUManagerPolicy            *string          `json:"cpuManagerPolicy,omitempty"`
	CPUCFSQuota                 *bool            `json:"cpuCFSQuota,omitempty"`
	CPUCFSQuotaPeriod           *metav1.Duration `json:"cpuCFSQuotaPeriod,omitempty"`
	ImageGCHighThresholdPercent *int32           `json:"imageGCHighThresholdPercent,omitempty"`
	ImageGCLowThresholdPercent  *int32           `json:"imageGCLowThresholdPercent,omitempty"`
	TopologyManagerPolicy       *string          `json:"topologyManagerPolicy,omitempty"`
	AllowedUnsafeSysctls        []string         `json:"allowedUnsafeSysctls,omitempty"`
	ContainerLogMaxSize         *string          `json:"containerLogMaxSize,omitempty"`
	ContainerLogMaxFiles        *int32           `json:"containerLogMaxFiles,omitempty"`
	PodPidsLimit                *int64           `json:"podPidsLimit,omitempty"`
	FailSwapOn                  *bool            `json:"failSwapOn,omitempty"`
}

// LinuxOSConfig is spec.linuxOSConfig.
type LinuxOSConfig struct {
	SwapFileSize               *resource.Quantity `json:"swapFileSize,omitempty"`
	TransparentHugePageEnabled *string            `json:"transparentHugePageEnabled,omitempty"`
	TransparentHugePageDefrag  *string            `json:"transparentHugePageDefrag,omitempty"`
	Sysctls                    *SysctlConfig      `json:"sysctls,omitempty"`
}

// SysctlConfig is spec.linuxOSConfig.sysctls.
type SysctlConfig struct {
	FsAioMaxNr                     *int32  `json:"fsAioMaxNr,omitempty"`
	FsFileMax                      *int32  `json:"fsFileMax,omitempty"`
	FsInotifyMaxUserWatches        *int32  `json:"fsInotifyMaxUserWatches,omitempty"`
	FsNrOpen                       *int32  `json:"fsNrOpen,omitempty"`
	KernelThreadsMax               *int32  `json:"kernelThreadsMax,omitempty"`
	NetCoreNetdevMaxBacklog        *int32  `json:"netCoreNetdevMaxBacklog,omitempty"`
	NetCoreOptmemMax               *int32  `json:"netCoreOptmemMax,omitempty"`
	NetCoreRmemDefault             *int32  `json:"netCoreRmemDefault,omitempty"`
	NetCoreRmemMax                 *int32  `json:"netCoreRmemMax,omitempty"`
	NetCoreWmemDefault             *int32  `json:"netCoreWmemDefault,omitempty"`
	NetCoreWmemMax                 *int32  `json:"netCoreWmemMax,omitempty"`
	NetCoreSomaxconn               *int32  `json:"netCoreSomaxconn,omitempty"`
	NetIPv4NeighDefaultGcThresh1   *int32  `json:"netIPv4NeighDefaultGcThresh1,omitempty"`
	NetIPv4NeighDefaultGcThresh2   *int32  `json:"netIPv4NeighDefaultGcThresh2,omitempty"`
	NetIPv4NeighDefaultGcThresh3   *int32  `json:"netIPv4NeighDefaultGcThresh3,omitempty"`
	NetIPv4TCPFinTimeout           *int32  `json:"netIPv4TCPFinTimeout,omitempty"`
	NetIPv4TCPKeepaliveProbes      *int32  `json:"netIPv4TCPKeepaliveProbes,omitempty"`
	NetIPv4TCPKeepaliveTime        *int32  `json:"netIPv4TCPKeepaliveTime,omitempty"`
	NetIPv4TCPKeepaliveIntvl       *int32  `json:"netIPv4TCPKeepaliveIntvl,omitempty"`
	NetIPv4TCPMaxSynBacklog        *int32  `json:"netIPv4TCPMaxSynBacklog,omitempty"`
	NetIPv4TCPMaxTwBuckets         *int32  `json:"netIPv4TCPMaxTwBuckets,omitempty"`
	NetNetfilterNfConntrackBuckets *int32  `json:"netNetfilterNfConntrackBuckets,omitempty"`
	NetNetfilterNfConntrackMax     *int32  `json:"netNetfilterNfConntrackMax,omitempty"`
	VMMaxMapCount                  *int32  `json:"vmMaxMapCount,omitempty"`
	VMSwappiness                   *int32  `json:"vmSwappiness,omitempty"`
	VMVfsCachePressure             *int32  `json:"vmVfsCachePressure,omitempty"`
	NetIPv4IPLocalPortRange        *string `json:"netIPv4IPLocalPortRange,omitempty"`
	NetIPv4TCPTwReuse              *bool   `json:"netIPv4TCPTwReuse,omitempty"`
}

// LocalDNS is spec.localDNS.
type LocalDNS struct {
	Mode             v1beta1.LocalDNSMode   `json:"mode"`
	VnetDNSOverrides []LocalDNSZoneOverride `json:"vnetDNSOverrides,omitempty"`
	KubeDNSOverrides []LocalDNSZoneOverride `json:"kubeDNSOverrides,omitempty"`
}

// LocalDNSZoneOverride is how one DNS zone is treated.
type LocalDNSZoneOverride struct {
	Zone               string  `json:"zone"`
	QueryLogging       *string `json:"queryLogging,omitempty"`
	Protocol           *string `json:"protocol,omitempty"`
	ForwardDestination *string `json:"forwardDestination,omitempty"`
	ForwardPolicy      *string `json:"forwardPolicy,omitempty"`
	MaxConcurrent      *int32  `json:"maxConcurrent,omitempty"`
	CacheDuration      *string `json:"cacheDuration,omitempty"`
	ServeStaleDuration *string `json:"serveStaleDuration,omitempty"`
	ServeStale         *string `json:"serveStale,omitempty"`
}
