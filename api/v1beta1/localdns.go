package v1beta1

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
	// +kubebuilder:validation:XValidation:message="root zone '.' cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides",rule="!self.exists(o, o.zone == '.' && has(o.forwardDestination) && o.forwardDestination == 'ClusterCoreDNS')"
	// +kubebuilder:validation:XValidation:message="external domains cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides",rule="!self.exists(o, o.zone != '.' && !o.zone.endsWith('cluster.local') && has(o.forwardDestination) && o.forwardDestination == 'ClusterCoreDNS')"
	// +optional
	VnetDNSOverrides []LocalDNSZoneOverride `json:"vnetDNSOverrides,omitempty"`
	// kubeDNSOverrides are for pods that use the cluster's DNS.
	// +listType=map
	// +listMapKey=zone
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:message="must contain required zones '.' and 'cluster.local'",rule="['.', 'cluster.local'].all(z, self.exists(o, o.zone == z))"
	// +optional
	KubeDNSOverrides []LocalDNSZoneOverride `json:"kubeDNSOverrides,omitempty"`
}

// LocalDNSZoneOverride sets how one DNS zone is cached and forwarded.
//
// +kubebuilder:validation:XValidation:message="'cluster.local' cannot be forwarded to VnetDNS",rule="!(self.zone.endsWith('cluster.local') && has(self.forwardDestination) && self.forwardDestination == 'VnetDNS')"
// +kubebuilder:validation:XValidation:message="serveStale Verify cannot be used with protocol ForceTCP",rule="!(has(self.serveStale) && self.serveStale == 'Verify' && has(self.protocol) && self.protocol == 'ForceTCP')"
type LocalDNSZoneOverride struct {
	// zone is the DNS zone, "." for everything else.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:Pattern=`^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$`
	Zone string `json:"zone"`
	// queryLogging is what is logged.
	// +kubebuilder:validation:Enum={Error,Log}
	// +optional
	QueryLogging *string `json:"queryLogging,omitempty"`
	// protocol towards the upstream server.
	// +kubebuilder:validation:Enum={PreferUDP,ForceTCP}
	// +optional
	Protocol *string `json:"protocol,omitempty"`
	// forwardDestination is the upstream server.
	// +kubebuilder:validation:Enum={ClusterCoreDNS,VnetDNS}
	// +optional
	ForwardDestination *string `json:"forwardDestination,omitempty"`
	// forwardPolicy chooses among upstream servers.
	// +kubebuilder:validation:Enum={Sequential,RoundRobin,Random}
	// +optional
	ForwardPolicy *string `json:"forwardPolicy,omitempty"`
	// maxConcurrent is how many queries may be under way; 0 means no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`
	// cacheDuration is how long answers are kept.
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	CacheDuration *string `json:"cacheDuration,omitempty"`
	// serveStaleDuration is how long expired answers may still be served.
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	ServeStaleDuration *string `json:"serveStaleDuration,omitempty"`
	// serveStale says whether expired answers are served, and when.
	// +kubebuilder:validation:Enum={Verify,Immediate,Disable}
	// +optional
	ServeStale *string `json:"serveStale,omitempty"`
}
