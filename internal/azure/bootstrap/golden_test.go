package bootstrap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/model"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

func ptr[T any](v T) *T { return &v }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// overlay is a cluster with overlay networking and Cilium.
func overlay(t testing.TB) Cluster {
	return Cluster{
		APIServer: "prod-dns-1a2b3c4d.hcp.eastus.azmk8s.io", CA: readFile(t, "testdata/ca.crt"),
		TenantID: "11111111-1111-1111-1111-111111111111", SubscriptionID: "22222222-2222-2222-2222-222222222222",
		Location: "eastus", NodeResourceGroup: "MC_prod_prod_eastus",
		KubeletIdentityClientID: "33333333-3333-3333-3333-333333333333",
		Join:                    Join{Token: jointoken.New("abcdef.0123456789abcdef")},
		Network: Network{
			Plugin: "azure", Mode: "overlay", Dataplane: "cilium", Policy: "cilium",
			SecurityGroup: "aks-agentpool-12345678-nsg", RouteTable: "aks-agentpool-12345678-routetable", DNSServiceIP: "10.0.0.10",
		},
	}
}

// general is an ordinary machine of a cluster.
func general(version string) Node {
	return Node{
		KubernetesVersion: version, Size: "Standard_D4s_v5", Arch: "amd64", MaxPods: 250,
		SubnetID: "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/MC_prod_prod_eastus" +
			"/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
		Reserved: Reserved{CPUMillis: 140, MemoryMiB: 2662}, Eviction: Eviction{MemoryMiB: 750, DiskPercent: 10, InodesPercent: 5},
		Labels: map[string]string{
			"karpenter.azure.com/aksnodeclass":            "default",
			"karpenter.sh/capacity-type":                  "on-demand",
			"karpenter.sh/nodepool":                       "general",
			"kubernetes.azure.com/cluster":                "MC_prod_prod_eastus",
			"kubernetes.azure.com/ebpf-dataplane":         "cilium",
			"kubernetes.azure.com/mode":                   "user",
			"kubernetes.azure.com/os-sku-effective":       "Ubuntu2404",
			"kubernetes.azure.com/role":                   "agent",
			"node.kubernetes.io/instance-type":            "Standard_D4s_v5",
			"topology.kubernetes.io/zone":                 "eastus-1",
			"node-restriction.kubernetes.io/kept-from-it": "true",
		},
	}
}

// golden is one folder of testdata.
type golden struct {
	name    string
	version string
	change  func(t testing.TB, c *Cluster, n *Node)
}

func goldens() []golden {
	return slices.Concat(systemGoldens(), networkGoldens(), machineGoldens(), clusterGoldens(), classGoldens())
}

// systemGoldens are operating systems and versions of Kubernetes.
func systemGoldens() []golden {
	system := func(name string) func(testing.TB, *Cluster, *Node) {
		return func(_ testing.TB, _ *Cluster, n *Node) { n.Labels["kubernetes.azure.com/os-sku-effective"] = name }
	}
	return []golden{
		{"ubuntu2204-1.29", "1.29.15", system("Ubuntu2204")},
		{"ubuntu2204-1.31", "1.31.13", system("Ubuntu2204")},
		{"ubuntu2404-1.34", "1.34.2", system("Ubuntu2404")},
		{"ubuntu2404-1.35", "1.35.1", system("Ubuntu2404")},
		{"azurelinux3-1.32", "1.32.9", system("AzureLinux3")},
		{"azurelinux3-1.34", "1.34.2", system("AzureLinux3")},
		{"fips-azurelinux3", "1.34.2", func(t testing.TB, c *Cluster, n *Node) {
			system("AzureLinux3")(t, c, n)
			n.Labels["kubernetes.azure.com/fips_enabled"] = "true"
		}},
	}
}

func networkGoldens() []golden {
	return []golden{
		{"overlay", "1.34.2", func(_ testing.TB, c *Cluster, n *Node) {
			c.Network.Dataplane, c.Network.Policy = "azure", ""
			delete(n.Labels, "kubernetes.azure.com/ebpf-dataplane")
		}},
		{"node-subnet", "1.34.2", func(_ testing.TB, c *Cluster, n *Node) {
			c.Network.Mode, c.Network.Dataplane, c.Network.Policy = "", "", "azure"
			delete(n.Labels, "kubernetes.azure.com/ebpf-dataplane")
			n.MaxPods = 30
		}},
		{"node-subnet-calico", "1.31.13", func(_ testing.TB, c *Cluster, n *Node) {
			c.Network.Mode, c.Network.Dataplane, c.Network.Policy = "", "", "calico"
			delete(n.Labels, "kubernetes.azure.com/ebpf-dataplane")
			n.MaxPods = 30
		}},
		{"node-subnet-cilium", "1.34.2", func(_ testing.TB, c *Cluster, n *Node) { c.Network.Mode, n.MaxPods = "", 30 }},
		{"bring-your-own-network", "1.35.1", func(_ testing.TB, c *Cluster, n *Node) {
			c.Network.Plugin, c.Network.Mode, c.Network.Dataplane, c.Network.Policy = "none", "", "", "none"
			delete(n.Labels, "kubernetes.azure.com/ebpf-dataplane")
		}},
		{"own-subnet", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.SubnetID = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/hub/subnets/nodes"
		}},
		{"dual-stack", "1.34.2", func(_ testing.TB, c *Cluster, _ *Node) { c.Network.DualStack = true }},
		{"no-outbound", "1.34.2", func(_ testing.TB, c *Cluster, _ *Node) {
			c.Network.NoOutbound, c.ContainerRegistry = true, "prodregistry.azurecr.io/aks-managed-repository"
		}},
	}
}

// gpu makes a machine one with GPUs.
func gpu(n *Node, size, manufacturer, count string) {
	n.Size = size
	n.Labels["node.kubernetes.io/instance-type"] = size
	n.Labels["karpenter.azure.com/sku-gpu-manufacturer"] = manufacturer
	n.Labels["karpenter.azure.com/sku-gpu-count"] = count
}

func machineGoldens() []golden {
	return []golden{
		{"nvidia-driver", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			gpu(n, "Standard_NC24ads_A100_v4", "nvidia", "1")
			n.NVIDIADriver = true
		}},
		{"nvidia-managed", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			gpu(n, "Standard_NC24ads_A100_v4", "nvidia", "1")
			n.NVIDIADriver, n.ManagedNVIDIA = true, true
		}},
		{"nvidia-mode-none", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) { gpu(n, "Standard_NC24ads_A100_v4", "nvidia", "1") }},
		{"amd", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) { gpu(n, "Standard_ND96isr_MI300X_v5", "amd", "8") }},
		{"arm64-1.31", "1.31.13", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Size, n.Arch = "Standard_D4ps_v6", "arm64"
			n.Labels["node.kubernetes.io/instance-type"], n.Labels["kubernetes.io/arch"] = "Standard_D4ps_v6", "arm64"
		}},
		{"spot", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Labels["karpenter.sh/capacity-type"], n.Labels["kubernetes.azure.com/scalesetpriority"] = "spot", "spot"
			n.Taints = []model.Taint{{Key: "kubernetes.azure.com/scalesetpriority", Value: "spot", Effect: model.NoSchedule}}
		}},
		{"ephemeral-disk", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Size = "Standard_D4ads_v6"
			n.Labels["node.kubernetes.io/instance-type"] = "Standard_D4ads_v6"
			n.Labels["karpenter.azure.com/sku-storage-ephemeralos-maxsize"] = "220"
		}},
		{"managed-disk", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Labels["karpenter.azure.com/sku-storage-premium-capable"] = "true"
		}},
	}
}

func clusterGoldens() []golden {
	return []golden{
		{"proxy", "1.34.2", func(t testing.TB, c *Cluster, _ *Node) {
			c.Proxy = &Proxy{
				HTTP: "http://proxy.contoso.com:3128/", HTTPS: "https://proxy.contoso.com:3129/",
				NoProxy: []string{"localhost", "127.0.0.1", "10.0.0.0/16", ".contoso.com"}, TrustedCA: readFile(t, "testdata/contoso.crt"),
			}
		}},
		{"custom-ca", "1.34.2", func(t testing.TB, c *Cluster, _ *Node) {
			c.CustomCAs = [][]byte{readFile(t, "testdata/contoso.crt"), readFile(t, "testdata/ca.crt")}
		}},
		{"us-government", "1.31.13", func(_ testing.TB, c *Cluster, n *Node) {
			c.Location, c.APIServer = "usgovvirginia", "prod-dns-1a2b3c4d.hcp.usgovvirginia.cx.aks.containerservice.azure.us"
			n.Labels["topology.kubernetes.io/zone"] = "usgovvirginia-1"
		}},
		{"china", "1.34.2", func(_ testing.TB, c *Cluster, n *Node) {
			c.Location, c.APIServer = "chinanorth3", "prod-dns-1a2b3c4d.hcp.chinanorth3.cx.prod.service.azk8s.cn"
			n.Labels["topology.kubernetes.io/zone"] = "chinanorth3-1"
		}},
		{"custom-cloud", "1.34.2", func(_ testing.TB, c *Cluster, _ *Node) {
			c.Location = "region1"
			c.PackagesURL = "https://packages.cloud.contoso.com/"
			c.CustomCloud = &CustomCloud{
				Environment: []byte(`{"name":"akscustom","resourceManagerEndpoint":"https://management.cloud.contoso.com/"}`),
				RepoDepot:   "https://repo.cloud.contoso.com/ubuntu", RegistrySuffix: ".registry.cloud.contoso.com", Registry: "mcr.cloud.contoso.com",
			}
		}},
		{"secure-tls", "1.35.1", func(_ testing.TB, c *Cluster, _ *Node) {
			c.Join = Join{SecureTLS: &SecureTLS{AADResource: "6dae42f8-4368-4678-94ff-3960e28e3630"}}
		}},
		{"restricted", "1.34.2", func(_ testing.TB, c *Cluster, _ *Node) {
			c.RestrictIMDS, c.NoSSH, c.UnattendedUpgrades, c.PrivateEgressProxy, c.AdminUsername = true, true, true, "10.1.2.3:8443", "ops"
		}},
		{"basic-load-balancer", "1.31.13", func(_ testing.TB, c *Cluster, _ *Node) { c.BasicLoadBalancer = true }},
	}
}

// classGoldens are settings of node classes and NodePools.
func classGoldens() []golden {
	return []golden{
		{"kubelet-configuration", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.MaxPods = 60
			n.Kubelet = Kubelet{
				CPUManagerPolicy: "static", CPUCFSQuota: ptr(false), CPUCFSQuotaPeriod: "50ms", ImageGCHighThresholdPercent: ptr(int32(90)),
				ImageGCLowThresholdPercent: ptr(int32(70)), TopologyManagerPolicy: "single-numa-node",
				AllowedUnsafeSysctls: []string{"net.core.somaxconn", "kernel.msg*"}, ContainerLogMaxSize: "100Mi",
				ContainerLogMaxFiles: ptr(int32(3)), PodPidsLimit: ptr(int64(4096)),
			}
		}},
		{"linux-os-config", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Kubelet.FailSwapOn = ptr(false)
			n.LinuxOS = &CustomLinuxOSConfig{
				EnableSwap: true, SwapFileSizeMB: 1500, TransparentHugePageSupport: "madvise", TransparentHugePageDefrag: "defer+madvise",
				Sysctl: &SysctlConfig{
					NetCoreSomaxconn: ptr(int32(16384)), NetIPv4TCPTwReuse: ptr(true), NetIPv4IPLocalPortRange: ptr("32768 60999"),
					VMMaxMapCount: ptr(int32(262144)), FsInotifyMaxUserWatches: ptr(int32(1048576)), VMSwappiness: ptr(int32(0)),
				},
			}
		}},
		{"localdns", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.LocalDNS = &LocalDNSProfile{}
			n.Labels["kubernetes.azure.com/localdns-state"] = "enabled"
		}},
		{"localdns-overrides", "1.35.1", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Labels["kubernetes.azure.com/localdns-state"] = "enabled"
			n.LocalDNS = &LocalDNSProfile{
				VNetDNS: map[string]LocalDNSOverride{
					".":           {QueryLogging: "Log", MaxConcurrent: ptr(int32(500)), ServeStale: "Verify"},
					"contoso.com": {Protocol: "ForceTCP", ForwardPolicy: "RoundRobin", CacheDurationSeconds: ptr(int32(60)), ServeStale: "Disable"},
				},
				KubeDNS: map[string]LocalDNSOverride{"contoso.com": {ForwardDestination: "VnetDNS", ServeStaleDurationSeconds: ptr(int32(120))}},
			}
		}},
		{"artifact-streaming", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.ArtifactStreaming = true
			n.Labels["kubernetes.azure.com/artifactstreaming-enabled"] = "true"
		}},
		{"taints", "1.34.2", func(_ testing.TB, _ *Cluster, n *Node) {
			n.Taints = []model.Taint{
				{Key: "team", Value: "blue", Effect: model.NoSchedule}, {Key: "nvidia.com/gpu", Effect: model.NoSchedule},
				{Key: "node.cilium.io/agent-not-ready", Value: "true", Effect: model.NoExecute}, {Key: "team", Value: "blue", Effect: model.NoSchedule},
			}
		}},
		{"custom-data-64kib", "1.34.2", fillCustomData},
	}
}

// fillCustomData gives the cluster as many certificates, and the node as many labels,
// as custom data can hold.
func fillCustomData(t testing.TB, c *Cluster, n *Node) {
	fits := func() bool {
		config, err := New(*c, *n)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.CustomData()
		return err == nil
	}
	pem := readFile(t, "testdata/contoso.crt")
	for fits() {
		c.CustomCAs = append(c.CustomCAs, pem)
	}
	c.CustomCAs = c.CustomCAs[:len(c.CustomCAs)-1]
	const longest = 63
	for i := range 100 {
		key := "filling-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		for length := longest; length >= 0; length-- {
			n.Labels[key] = strings.Repeat("x", length)
			if fits() {
				break
			}
			delete(n.Labels, key)
		}
		if n.Labels[key] != strings.Repeat("x", longest) {
			return
		}
	}
}

// build makes the configuration of a golden folder.
func (g *golden) build(t testing.TB) (Cluster, Node, *Config) {
	t.Helper()
	c, n := overlay(t), general(g.version)
	g.change(t, &c, &n)
	config, err := New(c, n)
	if err != nil {
		t.Fatal(err)
	}
	return c, n, config
}

func TestGoldenConfigurations(t *testing.T) {
	names := map[string]bool{}
	for _, g := range goldens() {
		names[g.name] = true
		t.Run(g.name, func(t *testing.T) {
			_, _, config := g.build(t)
			encoded, err := config.CustomData()
			if err != nil {
				t.Fatal(err)
			}
			data, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			line, err := config.JSON()
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := json.Indent(&text, line, "", "  "); err != nil {
				t.Fatal(err)
			}
			text.WriteByte('\n')
			compare(t, filepath.Join("testdata", g.name, "aks-node-config.json"), text.Bytes())
			compare(t, filepath.Join("testdata", g.name, "custom-data.txt"), data)
		})
	}
	folders, err := filepath.Glob("testdata/*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if name := filepath.Base(folder); !names[name] {
			t.Errorf("testdata/%s belongs to no case: remove it", name)
		}
	}
	if fewest := 24; len(names) < fewest {
		t.Errorf("%d golden folders, want at least %d: %v", len(names), fewest, slices.Sorted(maps.Keys(names)))
	}
}

func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(readFile(t, path)), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -rewrite writes it):\n%s", path, diff)
	}
}
