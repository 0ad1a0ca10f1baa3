package v1beta1

import karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

// LocalDNSMode says whether machines run a DNS cache.
//
// +kubebuilder:validation:Enum={Preferred,Required,Disabled}
type LocalDNSMode string

// The modes of LocalDNS.
const (
	LocalDNSModePreferred LocalDNSMode = "Preferred"
	LocalDNSModeRequired  LocalDNSMode = "Required"
	LocalDNSModeDisabled  LocalDNSMode = "Disabled"
)

// LocalDNS runs a DNS cache on every machine.
type LocalDNS struct {
	// mode Preferred leaves the choice to AKS, Required and Disabled make it.
	Mode LocalDNSMode `json:"mode"`
	// vnetDNSOverrides are for pods and processes that use the virtual network's DNS.
	// +listType=map
	// +listMapKey=zone
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:message="must contain required zones '.' and 'cluster.local'",rule="['.', 'cluster.local'].all(z, self.exists(o, o.zone == z))"
	// +kubebuilder:validation:XValidation:message="root zone '.' cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides",rule="!self.exists(o, o.zone == '.' && o.forwardDestination == 'ClusterCoreDNS')"
	// +kubebuilder:validation:XValidation:message="external domains cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides",rule="!self.exists(o, o.zone != '.' && !o.zone.endsWith('cluster.local') && o.forwardDestination == 'ClusterCoreDNS')"
	// +required
	VnetDNSOverrides []LocalDNSZoneOverride `json:"vnetDNSOverrides,omitempty"`
	// kubeDNSOverrides are for pods that use the cluster's DNS.
	// +listType=map
	// +listMapKey=zone
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:message="must contain required zones '.' and 'cluster.local'",rule="['.', 'cluster.local'].all(z, self.exists(o, o.zone == z))"
	// +required
	KubeDNSOverrides []LocalDNSZoneOverride `json:"kubeDNSOverrides,omitempty"`
}

// LocalDNSZoneOverride sets how one DNS zone is cached and forwarded. All fields are
// required, as upstream has it; their types are part of the hash.
//
// +kubebuilder:validation:XValidation:message="'cluster.local' cannot be forwarded to VnetDNS",rule="!(self.zone.endsWith('cluster.local') && self.forwardDestination == 'VnetDNS')"
// +kubebuilder:validation:XValidation:message="serveStale Verify cannot be used with protocol ForceTCP",rule="!(self.serveStale == 'Verify' && self.protocol == 'ForceTCP')"
type LocalDNSZoneOverride struct {
	// zone is the DNS zone, "." for everything else.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:Pattern=`^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$`
	Zone string `json:"zone"`
	// queryLogging is what is logged.
	// +kubebuilder:validation:Enum={Error,Log}
	// +required
	QueryLogging string `json:"queryLogging,omitempty"`
	// protocol towards the upstream server.
	// +kubebuilder:validation:Enum={PreferUDP,ForceTCP}
	// +required
	Protocol string `json:"protocol,omitempty"`
	// forwardDestination is the upstream server.
	// +kubebuilder:validation:Enum={ClusterCoreDNS,VnetDNS}
	// +required
	ForwardDestination string `json:"forwardDestination,omitempty"`
	// forwardPolicy chooses among upstream servers.
	// +kubebuilder:validation:Enum={Sequential,RoundRobin,Random}
	// +required
	ForwardPolicy string `json:"forwardPolicy,omitempty"`
	// maxConcurrent is how many queries may be under way; 0 means no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// cacheDuration is how long answers are kept.
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:message="must be at most 2147483647s, which is what AKS can be told",rule="duration(self) <= duration('2147483647s')"
	// +kubebuilder:validation:Type="string"
	// +kubebuilder:validation:Schemaless
	// +required
	CacheDuration karpv1.NillableDuration `json:"cacheDuration"`
	// serveStaleDuration is how long expired answers may still be served.
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:message="must be at most 2147483647s, which is what AKS can be told",rule="duration(self) <= duration('2147483647s')"
	// +kubebuilder:validation:Type="string"
	// +kubebuilder:validation:Schemaless
	// +required
	ServeStaleDuration karpv1.NillableDuration `json:"serveStaleDuration"`
	// serveStale says whether expired answers are served, and when.
	// +kubebuilder:validation:Enum={Verify,Immediate,Disable}
	// +required
	ServeStale string `json:"serveStale,omitempty"`
}
