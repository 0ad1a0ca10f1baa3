package bootstrap

import "github.com/nodeautoprovision/nap/internal/azure/jointoken"

// Config is AKSNodeConfig v1, as far as nap writes it: message Configuration of the
// contract. A field that is not written has the node's own default.
type Config struct {
	Version                    string                 `json:"version"`
	KubernetesVersion          string                 `json:"kubernetes_version"`
	VMSize                     string                 `json:"vm_size"`
	LinuxAdminUsername         string                 `json:"linux_admin_username"`
	IsVHD                      bool                   `json:"is_vhd"`
	NeedsCgroupV2              bool                   `json:"needs_cgroupv2"`
	KubernetesCACert           string                 `json:"kubernetes_ca_cert"` // base64 of PEM
	APIServer                  APIServerConfig        `json:"api_server_config"`
	Auth                       AuthConfig             `json:"auth_config"`
	Cluster                    ClusterConfig          `json:"cluster_config"`
	Bootstrapping              BootstrappingConfig    `json:"bootstrapping_config"`
	Kubelet                    KubeletConfig          `json:"kubelet_config"`
	Network                    NetworkConfig          `json:"network_config"`
	GPU                        GPUConfig              `json:"gpu_config"`
	KubeBinary                 KubeBinaryConfig       `json:"kube_binary_config"`
	CustomCloud                *CustomCloudConfig     `json:"custom_cloud_config,omitempty"`
	LinuxOS                    *CustomLinuxOSConfig   `json:"custom_linux_os_config,omitempty"`
	HTTPProxy                  *HTTPProxyConfig       `json:"http_proxy_config,omitempty"`
	CustomCACerts              []string               `json:"custom_ca_certs,omitempty"` // base64 of PEM, each
	LocalDNS                   *LocalDNSProfile       `json:"local_dns_profile,omitempty"`
	IMDSRestriction            *IMDSRestrictionConfig `json:"imds_restriction_config,omitempty"`
	EnableSSH                  *bool                  `json:"enable_ssh,omitempty"`
	EnableUnattendedUpgrade    bool                   `json:"enable_unattended_upgrade,omitempty"`
	IPv6DualStack              bool                   `json:"ipv6_dual_stack_enabled,omitempty"`
	OutboundCommand            string                 `json:"outbound_command,omitempty"`
	EnableArtifactStreaming    bool                   `json:"enable_artifact_streaming,omitempty"`
	BootstrapContainerRegistry string                 `json:"bootstrap_profile_container_registry_server,omitempty"`
	PrivateEgressProxyAddress  string                 `json:"private_egress_proxy_address,omitempty"`
}

// APIServerConfig says which API server the node speaks to.
type APIServerConfig struct {
	// Name is a host name alone: the node writes https://NAME:443.
	Name string `json:"api_server_name"`
}

// AuthConfig is how the node signs in to Azure; it becomes part of azure.json.
type AuthConfig struct {
	TenantID                    string `json:"tenant_id"`
	SubscriptionID              string `json:"subscription_id"`
	ServicePrincipalID          string `json:"service_principal_id"`
	AssignedIdentityID          string `json:"assigned_identity_id"`
	UseManagedIdentityExtension bool   `json:"use_managed_identity_extension"`
}

// ClusterConfig says where the node is; it becomes part of azure.json.
type ClusterConfig struct {
	ResourceGroup       string               `json:"resource_group"`
	Location            string               `json:"location"`
	VMType              string               `json:"vm_type"`
	UseInstanceMetadata bool                 `json:"use_instance_metadata"`
	LoadBalancer        LoadBalancerConfig   `json:"load_balancer_config"`
	Network             ClusterNetworkConfig `json:"cluster_network_config"`
}

// LoadBalancerConfig is what the cloud provider must know of the load balancer.
type LoadBalancerConfig struct {
	SKU                          string `json:"load_balancer_sku"`
	ExcludeMasterFromStandardSKU bool   `json:"exclude_master_from_standard_load_balancer"`
	MaxRuleCount                 int32  `json:"max_load_balancer_rule_count"`
}

// ClusterNetworkConfig names the network that the machine is in.
type ClusterNetworkConfig struct {
	VNetName          string `json:"vnet_name"`
	VNetResourceGroup string `json:"vnet_resource_group"`
	Subnet            string `json:"subnet"`
	SecurityGroupName string `json:"security_group_name"`
	RouteTable        string `json:"route_table"`
	CoreDNSServiceIP  string `json:"core_dns_service_ip"`
}

// BootstrappingConfig is how the node proves to the API server that it may join.
type BootstrappingConfig struct {
	AuthMethod                  string          `json:"bootstrapping_auth_method"`
	ClusterJoinMethod           string          `json:"cluster_join_method"`
	TLSBootstrappingToken       jointoken.Token `json:"tls_bootstrapping_token,omitzero"`
	SecureTLSAADResource        string          `json:"secure_tls_bootstrapping_aad_resource,omitempty"`
	SecureTLSAssignedIdentityID string          `json:"secure_tls_bootstrapping_user_assigned_identity_id,omitempty"`
}

// KubeletConfig is the kubelet's command line. Flags have their dashes.
type KubeletConfig struct {
	Flags      map[string]string `json:"kubelet_flags"`
	NodeLabels map[string]string `json:"kubelet_node_labels"`
	DiskType   string            `json:"kubelet_disk_type"`
}

// NetworkConfig says which network plugin the node installs.
type NetworkConfig struct {
	Plugin            string `json:"network_plugin"`
	Policy            string `json:"network_policy,omitempty"`
	VNetCNIPluginsURL string `json:"vnet_cni_plugins_url,omitempty"`
}

// GPUConfig says what the node does for its GPUs. The node knows driver versions.
type GPUConfig struct {
	EnableNVIDIA    bool `json:"enable_nvidia"`
	ConfigGPUDriver bool `json:"config_gpu_driver"`
	// GPUDevicePlugin is read by no node image of today: the plugin comes with EnableManagedGPU.
	GPUDevicePlugin bool `json:"gpu_device_plugin"`
	// EnableManagedGPU has the node run NVIDIA's device plugin and its exporter of metrics.
	EnableManagedGPU bool `json:"enable_managed_gpu,omitempty"`
}

// KubeBinaryConfig says where programs come from that the image does not carry, and
// which container holds the network of a pod.
type KubeBinaryConfig struct {
	PodInfraContainerImageURL  string `json:"pod_infra_container_image_url"`
	KubeBinaryURL              string `json:"kube_binary_url,omitempty"`
	LinuxCredentialProviderURL string `json:"linux_credential_provider_url,omitempty"`
}

// CustomCloudConfig describes a cloud that is none of Azure's own.
type CustomCloudConfig struct {
	Name                       string `json:"custom_cloud_env_name"`
	RepoDepotEndpoint          string `json:"repo_depot_endpoint,omitempty"`
	EnvironmentJSON            string `json:"custom_env_json_content,omitempty"` // base64
	ContainerRegistryDNSSuffix string `json:"container_registry_dns_suffix,omitempty"`
}

// HTTPProxyConfig is the proxy of the node and of the programs on it.
type HTTPProxyConfig struct {
	HTTPProxy      string   `json:"http_proxy,omitempty"`
	HTTPSProxy     string   `json:"https_proxy,omitempty"`
	NoProxyEntries []string `json:"no_proxy_entries,omitempty"`
	TrustedCA      string   `json:"proxy_trusted_ca,omitempty"` // base64 of PEM
}

// IMDSRestrictionConfig keeps pods from the instance metadata service.
type IMDSRestrictionConfig struct {
	Enable bool `json:"enable_imds_restriction"`
}

// CustomLinuxOSConfig are swap, huge pages and kernel parameters.
type CustomLinuxOSConfig struct {
	Sysctl                     *SysctlConfig `json:"sysctl_config,omitempty"`
	EnableSwap                 bool          `json:"enable_swap_config,omitempty"`
	SwapFileSizeMB             int32         `json:"swap_file_size,omitempty"`
	TransparentHugePageSupport string        `json:"transparent_hugepage_support,omitempty"`
	TransparentHugePageDefrag  string        `json:"transparent_defrag,omitempty"`
}

// SysctlConfig are kernel parameters; nil leaves one as the image has it. Names, types
// and order of the fields are those of AKS's own type, so that a value of that type
// converts into this one.
type SysctlConfig struct {
	FsAioMaxNr                     *int32  `json:"fs_aio_max_nr,omitempty"`
	FsFileMax                      *int32  `json:"fs_file_max,omitempty"`
	FsInotifyMaxUserWatches        *int32  `json:"fs_inotify_max_user_watches,omitempty"`
	FsNrOpen                       *int32  `json:"fs_nr_open,omitempty"`
	KernelThreadsMax               *int32  `json:"kernel_threads_max,omitempty"`
	NetCoreNetdevMaxBacklog        *int32  `json:"net_core_netdev_max_backlog,omitempty"`
	NetCoreOptmemMax               *int32  `json:"net_core_optmem_max,omitempty"`
	NetCoreRmemDefault             *int32  `json:"net_core_rmem_default,omitempty"`
	NetCoreRmemMax                 *int32  `json:"net_core_rmem_max,omitempty"`
	NetCoreSomaxconn               *int32  `json:"net_core_somaxconn,omitempty"`
	NetCoreWmemDefault             *int32  `json:"net_core_wmem_default,omitempty"`
	NetCoreWmemMax                 *int32  `json:"net_core_wmem_max,omitempty"`
	NetIPv4IPLocalPortRange        *string `json:"net_ipv4_ip_local_port_range,omitempty"`
	NetIPv4NeighDefaultGcThresh1   *int32  `json:"net_ipv4_neigh_default_gc_thresh1,omitempty"`
	NetIPv4NeighDefaultGcThresh2   *int32  `json:"net_ipv4_neigh_default_gc_thresh2,omitempty"`
	NetIPv4NeighDefaultGcThresh3   *int32  `json:"net_ipv4_neigh_default_gc_thresh3,omitempty"`
	NetIPv4TCPFinTimeout           *int32  `json:"net_ipv4_tcp_fin_timeout,omitempty"`
	NetIPv4TCPKeepaliveProbes      *int32  `json:"net_ipv4_tcp_keepalive_probes,omitempty"`
	NetIPv4TCPKeepaliveTime        *int32  `json:"net_ipv4_tcp_keepalive_time,omitempty"`
	NetIPv4TCPMaxSynBacklog        *int32  `json:"net_ipv4_tcp_max_syn_backlog,omitempty"`
	NetIPv4TCPMaxTwBuckets         *int32  `json:"net_ipv4_tcp_max_tw_buckets,omitempty"`
	NetIPv4TCPTwReuse              *bool   `json:"net_ipv4_tcp_tw_reuse,omitempty"`
	NetIPv4TcpkeepaliveIntvl       *int32  `json:"net_ipv4_tcpkeepalive_intvl,omitempty"`
	NetNetfilterNfConntrackBuckets *int32  `json:"net_netfilter_nf_conntrack_buckets,omitempty"`
	NetNetfilterNfConntrackMax     *int32  `json:"net_netfilter_nf_conntrack_max,omitempty"`
	VMMaxMapCount                  *int32  `json:"vm_max_map_count,omitempty"`
	VMSwappiness                   *int32  `json:"vm_swappiness,omitempty"`
	VMVfsCachePressure             *int32  `json:"vm_vfs_cache_pressure,omitempty"`
}

// LocalDNSProfile is the DNS cache of the node, by DNS zone.
type LocalDNSProfile struct {
	Enable bool `json:"enable_local_dns"`
	// VNetDNS is for the kubelet and pods with dnsPolicy Default, KubeDNS for pods with
	// dnsPolicy ClusterFirst.
	VNetDNS map[string]LocalDNSOverride `json:"vnet_dns_overrides,omitempty"`
	KubeDNS map[string]LocalDNSOverride `json:"kube_dns_overrides,omitempty"`
}

// LocalDNSOverride is how one DNS zone is forwarded and cached.
type LocalDNSOverride struct {
	QueryLogging              string `json:"query_logging,omitempty"`
	Protocol                  string `json:"protocol,omitempty"`
	ForwardDestination        string `json:"forward_destination,omitempty"`
	ForwardPolicy             string `json:"forward_policy,omitempty"`
	MaxConcurrent             *int32 `json:"max_concurrent,omitempty"`
	CacheDurationSeconds      *int32 `json:"cache_duration_in_seconds,omitempty"`
	ServeStaleDurationSeconds *int32 `json:"serve_stale_duration_in_seconds,omitempty"`
	ServeStale                string `json:"serve_stale,omitempty"`
}
