package bootstrap

import (
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/model"
)

// Cluster are the facts that are the same for all machines of a cluster.
type Cluster struct {
	// APIServer is the host name of the API server, without scheme and port.
	APIServer string
	// CA are the PEM certificates that the API server's is signed by.
	CA []byte
	// TenantID and SubscriptionID are those of the cluster and its machines.
	TenantID, SubscriptionID string
	// Location is the Azure region, such as eastus. The node knows by it which of
	// Azure's own clouds it is in.
	Location string
	// NodeResourceGroup is where the machines are (MC_...).
	NodeResourceGroup string
	// KubeletIdentityClientID is the client id of the identity that the kubelet pulls
	// images with; every machine has that identity.
	KubeletIdentityClientID string
	// AdminUsername is the user for people who log in; empty means azureuser.
	AdminUsername string
	Join          Join
	Network       Network
	// BasicLoadBalancer says that the cluster has a load balancer of SKU Basic.
	BasicLoadBalancer bool
	// Proxy is nil where machines reach the internet without one.
	Proxy *Proxy
	// CustomCAs are PEM certificates that the machines trust beside the image's own.
	CustomCAs [][]byte
	// CustomCloud is nil in Azure's own clouds.
	CustomCloud *CustomCloud
	// PackagesURL serves programs that an image does not carry; empty means AKS's own.
	PackagesURL string
	// ContainerRegistry is the registry from which nodes take everything in the place of
	// Microsoft's, with the path of its copies, such as
	// prod.azurecr.io/aks-managed-repository; empty where they take it from Microsoft's.
	ContainerRegistry string
	// PrivateEgressProxy is the address of AKS's proxy for private egress, or empty.
	PrivateEgressProxy string
	// NoSSH turns the machines' SSH servers off.
	NoSSH bool
	// RestrictIMDS keeps pods from the instance metadata service.
	RestrictIMDS bool
	// UnattendedUpgrades has the operating system install its security updates itself
	// (node OS upgrade channel Unmanaged).
	UnattendedUpgrades bool
}

// Join is how a machine proves that it may become a node. A bootstrap token, secure
// TLS bootstrapping, or both: the token is then what the machine falls back to.
type Join struct {
	// Token is a bootstrap token, ID.SECRET.
	Token jointoken.Token
	// SecureTLS has the machine prove by Azure's instance metadata who it is; nil
	// where the cluster does not have that.
	SecureTLS *SecureTLS
}

// SecureTLS are the settings of secure TLS bootstrapping; what is empty has the
// node's default.
type SecureTLS struct {
	// AADResource is what the machine asks Entra ID a token for.
	AADResource string
	// IdentityClientID is the client id of the identity that asks; empty means the
	// kubelet's.
	IdentityClientID string
}

// Network is how pods and machines are connected, in the words of the managed
// cluster's networkProfile.
type Network struct {
	// Plugin is azure or none, Mode overlay or empty, Dataplane cilium, azure or empty,
	// Policy azure, calico, cilium, none or empty.
	Plugin, Mode, Dataplane, Policy string
	// SecurityGroup and RouteTable are the names of those of the machines' subnet.
	SecurityGroup, RouteTable string
	// DNSServiceIP is the address of the cluster's DNS.
	DNSServiceIP string
	// DualStack says that nodes have addresses of IPv4 and IPv6.
	DualStack bool
	// NoOutbound says that machines reach nothing outside (outbound type none or
	// block), so that they do not look whether they do.
	NoOutbound bool
}

// Proxy is the cluster's HTTP proxy.
type Proxy struct {
	HTTP, HTTPS string
	NoProxy     []string
	// TrustedCA is the PEM certificate of the proxy, or empty.
	TrustedCA []byte
}

// CustomCloud is a cloud that is none of Azure's own.
type CustomCloud struct {
	// Environment is the JSON document of the cloud's endpoints, as the file named by
	// AZURE_ENVIRONMENT_FILEPATH has it.
	Environment []byte
	// RepoDepot serves packages of the operating system, RegistrySuffix is the end of
	// the names of the cloud's container registries, Registry the host that images of
	// AKS come from. Each may be empty.
	RepoDepot, RegistrySuffix, Registry string
}

// Node is what one machine is to become.
type Node struct {
	// KubernetesVersion is that of the kubelet, such as 1.34.2.
	KubernetesVersion string
	// Size is the VM size, Arch amd64 or arm64.
	Size, Arch string
	// SubnetID is the resource id of the subnet of the machine's network interface.
	SubnetID string
	// Labels of the node. Those that a kubelet may not give itself are left out: the
	// controller that registers nodes writes them.
	Labels map[string]string
	// Taints of the node, startup taints included. The taint of a node that is not
	// registered yet is put before them.
	Taints []model.Taint
	// MaxPods is how many pods the kubelet runs.
	MaxPods int
	// Reserved and Eviction are what the node keeps from pods: the numbers that its
	// instance type was planned with.
	Reserved Reserved
	Eviction Eviction
	// ProviderID is what the Node carries as spec.providerID; empty leaves it to the
	// cloud node manager.
	ProviderID string
	// NVIDIADriver has the node install NVIDIA's driver: true for NVIDIA sizes alone,
	// and only where a GPU operator does not.
	NVIDIADriver bool
	// ManagedNVIDIA has the node run NVIDIA's device plugin too. It needs NVIDIADriver.
	ManagedNVIDIA bool
	// ArtifactStreaming loads container images while containers already run.
	ArtifactStreaming bool
	Kubelet           Kubelet
	// LinuxOS is nil where the class says nothing.
	LinuxOS *CustomLinuxOSConfig
	// LocalDNS is nil where the node runs no DNS cache. What it leaves open has AKS's
	// defaults.
	LocalDNS *LocalDNSProfile
}

// Reserved is what the kubelet keeps for Kubernetes' own programs.
type Reserved struct {
	CPUMillis, MemoryMiB int64
}

// Eviction are the thresholds at which the kubelet evicts pods: free memory, and the
// free percentages of the node's file system and of its inodes.
type Eviction struct {
	MemoryMiB, DiskPercent, InodesPercent int64
}

// Kubelet are the kubelet settings of a node class; a zero value keeps what AKS gives
// its nodes, or the kubelet's own default.
type Kubelet struct {
	CPUManagerPolicy            string
	CPUCFSQuota                 *bool
	CPUCFSQuotaPeriod           string // a duration, such as 100ms
	ImageGCHighThresholdPercent *int32
	ImageGCLowThresholdPercent  *int32
	TopologyManagerPolicy       string
	AllowedUnsafeSysctls        []string
	ContainerLogMaxSize         string // a quantity, such as 50Mi
	ContainerLogMaxFiles        *int32
	PodPidsLimit                *int64 // -1 means no limit
	FailSwapOn                  *bool
}
