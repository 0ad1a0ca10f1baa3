// Package inputs says in the words of package bootstrap which cluster nap is
// configured for, and which machine was chosen.
package inputs

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// Config is what the machine of a specification is told. securityGroup is the network
// security group of the cluster's agent pools, by its name, aks-agentpool-ID-nsg, or
// by its resource id. The error names what is missing or wrong by the fields of the contract.
func Config(c *config.Config, spec launch.NodeSpec, securityGroup string) (*bootstrap.Config, error) {
	cluster := Cluster(c, securityGroup)
	if cluster.Join.Token = spec.JoinToken; spec.JoinToken.IsZero() {
		cluster.Join.Token = c.BootstrapToken
	}
	return bootstrap.New(cluster, Node(c, spec))
}

// Check says why no machine of a class could be told what it is to become: what is wrong
// with the class, or with what the cluster tells. What the size and the NodePool add is
// looked at with each machine. It asks nothing of Azure.
func Check(c *config.Config, class *nodeclass.NodeClass) error {
	if !bootstrap.Understands(class.ImageVersion) {
		return fmt.Errorf("spec.imageVersion %s is older than %s: such images do not understand what nap tells plain machines; "+
			"use a newer one, or run with PROVISION_MODE=aksmachineapi", class.ImageVersion, bootstrap.OldestImage)
	}
	if class.KubernetesVersion == "" {
		return nil // not known yet
	}
	example := launch.NodeSpec{
		Claim: "example", Class: class, MaxPods: cmp.Or(class.MaxPods, c.DefaultMaxPods()), JoinToken: jointoken.New(jointoken.Mask),
		SKU: &instancetype.SKU{Name: "Standard_D4s_v5", Arch: "amd64", VCPUs: 4, MemoryGiB: 16},
	}
	boot, err := Config(c, example, "aks-agentpool-00000000-nsg")
	if err != nil {
		return err
	}
	_, err = boot.CustomData()
	return err
}

// Cluster is what nap is configured for.
func Cluster(c *config.Config, securityGroup string) bootstrap.Cluster {
	securityGroup = securityGroup[strings.LastIndexByte(securityGroup, '/')+1:]
	out := bootstrap.Cluster{
		APIServer: hostOf(c.ClusterEndpoint), CA: c.ClusterCA,
		TenantID: c.Cloud.TenantID, SubscriptionID: c.SubscriptionID, Location: c.Location, NodeResourceGroup: c.NodeResourceGroup,
		KubeletIdentityClientID: c.KubeletIdentityClientID, AdminUsername: c.AdminUsername,
		Network: bootstrap.Network{
			Plugin: c.NetworkPlugin, Mode: c.NetworkPluginMode, Dataplane: c.NetworkDataplane, Policy: c.NetworkPolicy,
			SecurityGroup: securityGroup, RouteTable: routeTable(securityGroup), DNSServiceIP: c.DNSServiceIP,
		},
		PackagesURL: c.Boot.PackagesURL, ContainerRegistry: c.Boot.Registry, PrivateEgressProxy: c.Boot.PrivateEgressProxy,
		RestrictIMDS: c.Boot.RestrictIMDS, NoSSH: c.Boot.NoSSH,
		CustomCloud: customCloud(c.Cloud.Environment),
	}
	if c.Boot.SecureTLS {
		out.Join.SecureTLS = &bootstrap.SecureTLS{AADResource: c.Boot.SecureTLSResource}
	}
	learn(&out, &c.Facts)
	return out
}

// learn adds what the cluster told of itself.
func learn(out *bootstrap.Cluster, f *managedcluster.Facts) {
	n := &f.Network
	out.Network.DualStack = len(n.IPFamilies) > 1
	out.Network.NoOutbound = slices.Contains([]string{"none", "block"}, strings.ToLower(n.OutboundType))
	out.BasicLoadBalancer = strings.EqualFold(n.LoadBalancerSKU, "basic")
	out.UnattendedUpgrades = f.UnattendedUpgrades
	out.Proxy = proxy(f, out.APIServer)
	for _, ca := range f.CustomCAs {
		out.CustomCAs = append(out.CustomCAs, decoded(ca))
	}
}

// proxy is the cluster's HTTP proxy; nil where it has none. What machines and pods must
// reach directly is excepted, whether the cluster tells so or not: it is what AKS adds
// to the exceptions of its own machines.
func proxy(f *managedcluster.Facts, apiServer string) *bootstrap.Proxy {
	if f.Proxy.HTTP == "" && f.Proxy.HTTPS == "" {
		return nil
	}
	direct := slices.Concat(f.Proxy.NoProxy,
		[]string{"localhost", "127.0.0.1", "169.254.169.254", "168.63.129.16", "konnectivity", apiServer, f.FQDN, f.PrivateFQDN},
		f.Network.PodCIDRs, f.Network.ServiceCIDRs)
	out := &bootstrap.Proxy{
		HTTP: f.Proxy.HTTP, HTTPS: cmp.Or(f.Proxy.HTTPS, f.Proxy.HTTP), TrustedCA: decoded(f.Proxy.TrustedCA),
	}
	for _, to := range direct {
		if to != "" && !slices.Contains(out.NoProxy, to) {
			out.NoProxy = append(out.NoProxy, to)
		}
	}
	return out
}

// decoded is a certificate that Azure gives in base64; what is none is taken as it is,
// and refused where it is no PEM either.
func decoded(text string) []byte {
	if text == "" {
		return nil
	}
	pem, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return []byte(text)
	}
	return pem
}

// customCloud are the endpoints of a cloud that is none of Azure's own: the whole file,
// because programs on the machine read more of it than nap.
func customCloud(e *config.Environment) *bootstrap.CustomCloud {
	if e == nil {
		return nil
	}
	return &bootstrap.CustomCloud{
		Environment: e.Document, RepoDepot: e.RepoDepot, RegistrySuffix: e.RegistrySuffix, Registry: e.MCR,
	}
}

// hostOf is the host name of the API server's URL: nodes speak to port 443 of it.
func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return endpoint // refused by its form
	}
	if u.Port() != "" && u.Port() != "443" {
		return u.Host // refused: nodes take no other port
	}
	return u.Hostname()
}

// routeTable is the route table of the cluster's agent pools, which AKS names as it
// names their security group.
func routeTable(securityGroup string) string {
	id, ok := strings.CutSuffix(strings.ToLower(securityGroup), "-nsg")
	if !ok {
		return ""
	}
	return id + "-routetable"
}

// Node is the machine that was chosen, with the very reserves that its instance type
// was planned with.
func Node(c *config.Config, spec launch.NodeSpec) bootstrap.Node {
	subnet := spec.Class.SubnetID
	if subnet == "" {
		subnet = c.VNETSubnetID
	}
	driver := spec.SKU.GPUs > 0 && spec.SKU.Size.GPUVendor() == instancetype.NVIDIA && !spec.Class.NoGPUDriver
	return bootstrap.Node{
		KubernetesVersion: spec.Class.KubernetesVersion, Size: spec.SKU.Name, Arch: spec.SKU.Arch, SubnetID: subnet,
		Labels: spec.Labels, Taints: spec.Taints, MaxPods: spec.MaxPods,
		Reserved: bootstrap.Reserved{
			CPUMillis: instancetype.KubeReservedCPU(spec.SKU.VCPUs), MemoryMiB: instancetype.KubeReservedMemoryMiB(spec.SKU.MemoryGiB),
		},
		Eviction: bootstrap.Eviction{
			MemoryMiB: instancetype.EvictionMemoryMiB(), DiskPercent: instancetype.EvictionDiskPercent(),
			InodesPercent: instancetype.EvictionInodesPercent(),
		},
		ProviderID:        launch.ProviderID(c.SubscriptionID, c.NodeResourceGroup, spec.Claim),
		NVIDIADriver:      driver,
		ManagedNVIDIA:     driver && spec.Class.NVIDIAManagement == nodeclass.NVIDIAManaged,
		ArtifactStreaming: spec.Class.ArtifactStreaming,
		Kubelet:           kubelet(&spec.Class.Kubelet),
		LinuxOS:           linuxOS(spec.Class.LinuxOS),
		LocalDNS:          localDNS(spec.Class),
	}
}

func kubelet(k *nodeclass.Kubelet) bootstrap.Kubelet {
	return bootstrap.Kubelet{
		CPUManagerPolicy: k.CPUManagerPolicy, CPUCFSQuota: k.CPUCFSQuota, CPUCFSQuotaPeriod: k.CPUCFSQuotaPeriod,
		ImageGCHighThresholdPercent: k.ImageGCHighThresholdPercent, ImageGCLowThresholdPercent: k.ImageGCLowThresholdPercent,
		TopologyManagerPolicy: k.TopologyManagerPolicy, AllowedUnsafeSysctls: k.AllowedUnsafeSysctls,
		ContainerLogMaxSize: k.ContainerLogMaxSize, ContainerLogMaxFiles: k.ContainerLogMaxFiles,
		PodPidsLimit: k.PodPidsLimit, FailSwapOn: k.FailSwapOn,
	}
}

// linuxOS are the class's settings of the operating system; nil where it has none.
func linuxOS(c *armcontainerservice.LinuxOSConfig) *bootstrap.CustomLinuxOSConfig {
	if c == nil {
		return nil
	}
	out := &bootstrap.CustomLinuxOSConfig{
		TransparentHugePageSupport: value(c.TransparentHugePageEnabled), TransparentHugePageDefrag: value(c.TransparentHugePageDefrag),
		SwapFileSizeMB: value(c.SwapFileSizeMB), EnableSwap: value(c.SwapFileSizeMB) > 0,
	}
	if c.Sysctls != nil {
		sysctls := bootstrap.SysctlConfig(*c.Sysctls)
		out.Sysctl = &sysctls
	}
	return out
}

// localDNS is the class's DNS cache; nil where its machines run none.
func localDNS(c *nodeclass.NodeClass) *bootstrap.LocalDNSProfile {
	if !c.LocalDNS {
		return nil
	}
	out := &bootstrap.LocalDNSProfile{}
	if p := c.LocalDNSProfile; p != nil {
		out.VNetDNS, out.KubeDNS = zones(p.VnetDNSOverrides), zones(p.KubeDNSOverrides)
	}
	return out
}

func zones(of map[string]*armcontainerservice.LocalDNSOverride) map[string]bootstrap.LocalDNSOverride {
	out := map[string]bootstrap.LocalDNSOverride{}
	for zone, o := range maps.All(of) {
		if o == nil {
			continue
		}
		out[zone] = bootstrap.LocalDNSOverride{
			QueryLogging: string(value(o.QueryLogging)), Protocol: string(value(o.Protocol)),
			ForwardDestination: string(value(o.ForwardDestination)), ForwardPolicy: string(value(o.ForwardPolicy)),
			ServeStale: string(value(o.ServeStale)), MaxConcurrent: o.MaxConcurrent,
			CacheDurationSeconds: o.CacheDurationInSeconds, ServeStaleDurationSeconds: o.ServeStaleDurationInSeconds,
		}
	}
	return out
}

// value is what a pointer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
