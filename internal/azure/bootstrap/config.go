package bootstrap

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// ContractVersion is the version of AKSNodeConfig that is written; the node refuses
// every other.
const ContractVersion = "v1"

// Values of the contract's enums, by name.
const (
	vmTypeStandard       = "VM_TYPE_STANDARD"
	skuStandard          = "LOAD_BALANCER_SKU_STANDARD"
	skuBasic             = "LOAD_BALANCER_SKU_BASIC"
	authToken            = "BOOTSTRAPPING_AUTH_METHOD_BOOTSTRAP_TOKEN" //nolint:gosec // the name of a method
	authSecureTLS        = "BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING"
	joinByAuth           = "CLUSTER_JOIN_METHOD_USE_BOOTSTRAPPING_AUTH"
	pluginNone           = "NETWORK_PLUGIN_NONE"
	pluginAzure          = "NETWORK_PLUGIN_AZURE"
	policyNone           = "NETWORK_POLICY_NONE"
	policyAzure          = "NETWORK_POLICY_AZURE"
	policyCalico         = "NETWORK_POLICY_CALICO"
	diskOS               = "KUBELET_DISK_OS_DISK"
	customCloudName      = "akscustom"
	managedIdentity      = "msi"
	defaultAdmin         = "azureuser"
	maxLoadBalancerRules = 250
)

// Where nodes get programs that their image does not carry, unless the cluster says
// otherwise, and the releases that are named there. Credential providers have
// releases of their own; these are the ones of Azure/karpenter-provider-azure,
// pkg/providers/imagefamily/bootstrap. The network plugin is the newest that images
// carry (Azure/AgentBaker, parts/common/components.json at commit 06836ee2).
const (
	defaultPackagesURL = "https://packages.aks.azure.com"
	azureCNIRelease    = "1.6.21"
)

// podInfraImage is the container that holds the network of a pod. What starts
// containers on the node can start no pod without its name. It is the name under which
// images carry it since AgentBaker's release of November 2025
// (parts/common/components.json); older ones download it.
const podInfraImage = "mcr.microsoft.com/oss/v2/kubernetes/pause:3.6"

// credentialProviderRelease is by Kubernetes minor version; from
// fromPackagedCredentials on the image's packages carry them.
func credentialProviderRelease(minor int) string {
	switch {
	case minor < fromCredentialProvider:
		return ""
	case minor == fromCredentialProvider:
		return "1.30.12"
	case minor == fromCredentialProvider+1:
		return "1.31.6"
	case minor < fromPackagedCredentials:
		return "1.32.5"
	}
	return ""
}

// New is what a machine of the cluster is told. The error names every field of the
// contract that is missing or cannot be right, with its value and what is wanted;
// then there is no configuration.
func New(c Cluster, n Node) (*Config, error) {
	subnet, minor, err := check(&c, &n)
	if err != nil {
		return nil, err
	}
	out := &Config{
		Version:            ContractVersion,
		KubernetesVersion:  strings.TrimPrefix(n.KubernetesVersion, "v"),
		VMSize:             n.Size,
		LinuxAdminUsername: orElse(c.AdminUsername, defaultAdmin),
		IsVHD:              true,
		NeedsCgroupV2:      true,
		KubernetesCACert:   base64.StdEncoding.EncodeToString(c.CA),
		APIServer:          APIServerConfig{Name: c.APIServer},
		Auth: AuthConfig{
			TenantID: c.TenantID, SubscriptionID: c.SubscriptionID, ServicePrincipalID: managedIdentity,
			AssignedIdentityID: c.KubeletIdentityClientID, UseManagedIdentityExtension: true,
		},
		Cluster: ClusterConfig{
			ResourceGroup: c.NodeResourceGroup, Location: c.Location, VMType: vmTypeStandard, UseInstanceMetadata: true,
			LoadBalancer: LoadBalancerConfig{
				SKU: skuStandard, ExcludeMasterFromStandardSKU: true, MaxRuleCount: maxLoadBalancerRules,
			},
			Network: ClusterNetworkConfig{
				VNetName: subnet.vnet, VNetResourceGroup: subnet.group, Subnet: subnet.name,
				SecurityGroupName: c.Network.SecurityGroup, RouteTable: c.Network.RouteTable, CoreDNSServiceIP: c.Network.DNSServiceIP,
			},
		},
		Bootstrapping: bootstrapping(&c),
		Kubelet: KubeletConfig{
			Flags: kubeletFlags(&n, minor, clusterDNS(&c, &n)), NodeLabels: kubeletLabels(n.Labels), DiskType: diskOS,
		},
		Network:                    network(&c, n.Arch),
		GPU:                        gpuConfig(&n),
		KubeBinary:                 kubeBinaries(&c, &n, minor),
		CustomCloud:                customCloud(c.CustomCloud),
		LinuxOS:                    n.LinuxOS,
		HTTPProxy:                  proxy(c.Proxy),
		LocalDNS:                   localDNS(n.LocalDNS),
		EnableUnattendedUpgrade:    c.UnattendedUpgrades,
		EnableSSH:                  enableSSH(&c),
		IPv6DualStack:              c.Network.DualStack,
		OutboundCommand:            outboundCommand(&c),
		EnableArtifactStreaming:    n.ArtifactStreaming,
		BootstrapContainerRegistry: c.ContainerRegistry,
		PrivateEgressProxyAddress:  c.PrivateEgressProxy,
	}
	if c.BasicLoadBalancer {
		out.Cluster.LoadBalancer.SKU = skuBasic
	}
	if c.RestrictIMDS {
		out.IMDSRestriction = &IMDSRestrictionConfig{Enable: true}
	}
	for _, pem := range c.CustomCAs {
		out.CustomCACerts = append(out.CustomCACerts, base64.StdEncoding.EncodeToString(pem))
	}
	return out, nil
}

func orElse(value, unset string) string {
	if value == "" {
		return unset
	}
	return value
}

// bootstrapping is how the machine joins. A token beside secure TLS bootstrapping is
// what the node falls back to.
func bootstrapping(c *Cluster) BootstrappingConfig {
	out := BootstrappingConfig{AuthMethod: authToken, ClusterJoinMethod: joinByAuth, TLSBootstrappingToken: c.Join.Token}
	if s := c.Join.SecureTLS; s != nil {
		out.AuthMethod = authSecureTLS
		out.SecureTLSAADResource = s.AADResource
		out.SecureTLSAssignedIdentityID = orElse(s.IdentityClientID, c.KubeletIdentityClientID)
	}
	return out
}

// network says what the node installs itself: in a cluster with overlay or Cilium an
// agent of the cluster brings the plugin, and one's own is one's own. Policies that
// the contract does not name are none of the node's business.
func network(c *Cluster, arch string) NetworkConfig {
	out := NetworkConfig{Plugin: pluginNone}
	if c.Network.Plugin == "azure" && c.Network.Mode != "overlay" && c.Network.Dataplane != "cilium" {
		out.Plugin = pluginAzure
		out.VNetCNIPluginsURL = fmt.Sprintf("%s/azure-cni/v%s/binaries/azure-vnet-cni-linux-%s-v%s.tgz",
			packages(c), azureCNIRelease, arch, azureCNIRelease)
	}
	switch c.Network.Policy {
	case "azure":
		out.Policy = policyAzure
	case "calico":
		out.Policy = policyCalico
	case "none":
		out.Policy = policyNone
	}
	return out
}

func packages(c *Cluster) string {
	return strings.TrimRight(orElse(c.PackagesURL, defaultPackagesURL), "/")
}

// kubeBinaries names the container that holds a pod's network, and says where the node
// gets a kubelet and a credential provider of its version where packages of the image's
// own distribution serve neither.
func kubeBinaries(c *Cluster, n *Node, minor int) KubeBinaryConfig {
	out := KubeBinaryConfig{PodInfraContainerImageURL: podInfraImage}
	version := strings.TrimPrefix(n.KubernetesVersion, "v")
	if minor < fromPackagedKubelet {
		out.KubeBinaryURL = fmt.Sprintf("%s/kubernetes/v%s/binaries/kubernetes-node-linux-%s.tar.gz", packages(c), version, n.Arch)
	}
	if release := credentialProviderRelease(minor); release != "" {
		out.LinuxCredentialProviderURL = fmt.Sprintf("%s/cloud-provider-azure/v%s/binaries/azure-acr-credential-provider-linux-%s-v%s.tar.gz",
			packages(c), release, n.Arch, release)
	}
	return out
}

// clusterDNS is where the node's pods ask for names: the node's own cache where it runs
// one, else the cluster's DNS.
func clusterDNS(c *Cluster, n *Node) string {
	if n.LocalDNS != nil {
		return localDNSAddress
	}
	return c.Network.DNSServiceIP
}

// enableSSH is nil, which means yes, where nothing else is asked for.
func enableSSH(c *Cluster) *bool {
	if !c.NoSSH {
		return nil
	}
	enabled := false
	return &enabled
}

// outboundCommand is what the node runs to see whether it reaches the registry of
// AKS's images; none where it cannot, or where the cloud's registry is not known.
func outboundCommand(c *Cluster) string {
	registry := "mcr.microsoft.com"
	switch {
	case c.Network.NoOutbound:
		return ""
	case c.CustomCloud != nil:
		registry = c.CustomCloud.Registry
	case strings.HasPrefix(strings.ToLower(c.Location), "china"):
		registry = "gcr.azk8s.cn"
	}
	if registry == "" {
		return ""
	}
	return "curl -v --insecure --proxy-insecure https://" + registry + "/v2/"
}

func customCloud(c *CustomCloud) *CustomCloudConfig {
	if c == nil {
		return nil
	}
	return &CustomCloudConfig{
		Name: customCloudName, RepoDepotEndpoint: c.RepoDepot, ContainerRegistryDNSSuffix: c.RegistrySuffix,
		EnvironmentJSON: base64.StdEncoding.EncodeToString(c.Environment),
	}
}

// gpuConfig has the node install what belongs to NVIDIA's GPUs: the driver, and beside it the
// device plugin and the metrics exporter where the class leaves them to the node.
func gpuConfig(n *Node) GPUConfig {
	return GPUConfig{
		EnableNVIDIA: n.NVIDIADriver, ConfigGPUDriver: n.NVIDIADriver, EnableManagedGPU: n.NVIDIADriver && n.ManagedNVIDIA,
	}
}

func proxy(p *Proxy) *HTTPProxyConfig {
	if p == nil {
		return nil
	}
	return &HTTPProxyConfig{
		HTTPProxy: p.HTTP, HTTPSProxy: p.HTTPS, NoProxyEntries: p.NoProxy,
		TrustedCA: base64.StdEncoding.EncodeToString(p.TrustedCA),
	}
}
