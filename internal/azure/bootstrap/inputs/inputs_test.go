package inputs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/model"
)

func ptr[T any](v T) *T { return &v }

func cluster(t testing.TB) *config.Config {
	t.Helper()
	ca, err := os.ReadFile("../testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	return &config.Config{
		ClusterEndpoint: "https://prod.hcp.eastus.azmk8s.io:443", ClusterCA: ca, BootstrapToken: jointoken.New("abcdef.0123456789abcdef"),
		SubscriptionID: "s", Location: "eastus", NodeResourceGroup: "MC_rg", Cloud: config.Cloud{TenantID: "t"},
		VNETSubnetID:            "/subscriptions/s/resourceGroups/MC_rg/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
		NetworkPlugin:           "azure",
		NetworkPluginMode:       "overlay",
		NetworkDataplane:        "cilium",
		DNSServiceIP:            "10.0.0.10",
		KubeletIdentityClientID: "id", AdminUsername: "azureuser",
	}
}

const group = "aks-agentpool-12345678-nsg"

func specOf(sku *instancetype.SKU) launch.NodeSpec {
	return launch.NodeSpec{Claim: "general-abc12", SKU: sku, MaxPods: 250, Class: &nodeclass.NodeClass{Name: "default", KubernetesVersion: "1.34.2"}}
}

// size is a size as Azure describes it.
func size(t testing.TB, name, arch string, cpus, gpus int64, memory float64) *instancetype.SKU {
	t.Helper()
	parsed, err := instancetype.ParseSize(name)
	if err != nil {
		t.Fatal(err)
	}
	return &instancetype.SKU{Name: name, Size: parsed, Arch: arch, VCPUs: cpus, MemoryGiB: memory, GPUs: gpus, Generations: []int{2}}
}

// calm is a market in which everything is to be had.
type calm struct{}

func (calm) NodeCost(string, model.CapacityType) model.Money      { return 0 }
func (calm) Price(string, model.CapacityType) (model.Money, bool) { return model.USD(1), true }
func (calm) Unavailable(*instancetype.SKU, string, model.CapacityType) (string, bool) {
	return "", false
}
func (calm) Left(string) (int64, bool) { return 0, false }
func (calm) Revision() uint64          { return 1 }

// TestKubeletReservesWhatWasPlanned holds that what pods were promised is what the
// kubelet leaves them, of every size and version.
func TestKubeletReservesWhatWasPlanned(t *testing.T) {
	catalog := instancetype.New(instancetype.Region{Name: "eastus", MemoryOverhead: 0.075, DefaultMaxPods: 250},
		instancetype.Market{Prices: calm{}, Unavailable: calm{}, Quota: calm{}})
	var skus []instancetype.SKU
	for _, s := range []*instancetype.SKU{
		size(t, "Standard_A2_v2", "amd64", 2, 0, 3.5), size(t, "Standard_D4s_v5", "amd64", 4, 0, 16), size(t, "Standard_D16s_v5", "amd64", 16, 0, 64),
		size(t, "Standard_E64s_v5", "amd64", 64, 0, 512), size(t, "Standard_NC24ads_A100_v4", "amd64", 24, 1, 220), size(t, "Standard_D4ps_v6", "arm64", 4, 0, 16),
	} {
		skus = append(skus, *s)
	}
	catalog.SetSKUs(skus)
	class := &nodeclass.NodeClass{Name: "default", OSDiskSizeGB: 100, Images: []nodeclass.Image{
		{ID: "x", Arch: "amd64", Generation: 2}, {ID: "a", Arch: "arm64", Generation: 2},
	}}
	for minor := 28; minor <= 37; minor++ {
		class.KubernetesVersion = fmt.Sprintf("1.%d.3", minor)
		types := catalog.For(class).Catalog.InstanceTypes
		if len(types) != len(skus) {
			t.Fatalf("%d types of %d sizes: %v", len(types), len(skus), catalog.For(class).Excluded)
		}
		for i := range types {
			sku, _ := catalog.SKU(types[i].Name)
			spec := specOf(sku)
			spec.Class = class
			got, err := Config(cluster(t), spec, group)
			if err != nil {
				t.Fatalf("%s: %v", types[i].Name, err)
			}
			keepsWhatWasPlanned(t, &types[i], got.Kubelet.Flags)
		}
	}
}

// keepsWhatWasPlanned compares what a kubelet keeps from pods with what planning does.
func keepsWhatWasPlanned(t *testing.T, planned *model.InstanceType, flags map[string]string) {
	t.Helper()
	var cpu, reserved, eviction, disk, inodes int64
	if _, err := fmt.Sscanf(flags["--kube-reserved"], "cpu=%dm,memory=%dMi", &cpu, &reserved); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(flags["--eviction-hard"], "memory.available<%dMi,nodefs.available<%d%%,nodefs.inodesFree<%d%%",
		&eviction, &disk, &inodes); err != nil {
		t.Fatal(err)
	}
	keeps := map[int]int64{model.CPU: cpu, model.Memory: (reserved + eviction) << 20, model.EphemeralStorage: 100_000_000_000 * disk / 100}
	for axis, kept := range keeps {
		if promised := planned.Overhead.Get(axis); kept != promised {
			t.Errorf("%s: axis %d: the kubelet keeps %d, planned with %d", planned.Name, axis, kept, promised)
		}
	}
	// Whatever else is kept from pods would be missing in the plan.
	for _, flag := range []string{"--system-reserved", "--eviction-soft", "--eviction-minimum-reclaim", "--reserved-memory", "--reserved-cpus"} {
		if value, has := flags[flag]; has {
			t.Errorf("%s: %s=%s is not planned with", planned.Name, flag, value)
		}
	}
	if got, want := flags["--enforce-node-allocatable"], "pods"; got != want {
		t.Errorf("%s: --enforce-node-allocatable=%s, want %s", planned.Name, got, want)
	}
}

func TestConfigOfAPlannedMachine(t *testing.T) {
	spec := specOf(size(t, "Standard_D4s_v5", "amd64", 4, 0, 16))
	spec.Labels = map[string]string{"karpenter.sh/nodepool": "general"}
	spec.Taints = []model.Taint{{Key: "team", Value: "blue", Effect: model.NoSchedule}}
	spec.Class.ArtifactStreaming = true
	got, err := Config(cluster(t), spec, group)
	if err != nil {
		t.Fatal(err)
	}
	if want := (bootstrap.ClusterNetworkConfig{
		VNetName: "aks-vnet-12345678", VNetResourceGroup: "MC_rg", Subnet: "aks-subnet", SecurityGroupName: group,
		RouteTable: "aks-agentpool-12345678-routetable", CoreDNSServiceIP: "10.0.0.10",
	}); got.Cluster.Network != want {
		t.Errorf("network %+v, want %+v", got.Cluster.Network, want)
	}
	if got.APIServer.Name != "prod.hcp.eastus.azmk8s.io" || got.KubernetesCACert != base64.StdEncoding.EncodeToString(cluster(t).ClusterCA) {
		t.Errorf("API server %q, CA %q", got.APIServer.Name, got.KubernetesCACert)
	}
	flags := got.Kubelet.Flags
	if want := "karpenter.sh/unregistered:NoExecute,team=blue:NoSchedule"; flags["--register-with-taints"] != want {
		t.Errorf("taints %q, want %q", flags["--register-with-taints"], want)
	}
	if want := launch.ProviderID("s", "MC_rg", "general-abc12"); flags["--provider-id"] != want {
		t.Errorf("provider id %q, want %q", flags["--provider-id"], want)
	}
	if !got.EnableArtifactStreaming || got.GPU.EnableNVIDIA || got.LocalDNS != nil || got.LinuxOS != nil {
		t.Errorf("streaming %t, NVIDIA %t, LocalDNS %v, OS %v", got.EnableArtifactStreaming, got.GPU.EnableNVIDIA, got.LocalDNS, got.LinuxOS)
	}
	own := "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub/subnets/nodes"
	spec.Class.SubnetID = own
	if got, err = Config(cluster(t), spec, group); err != nil || got.Cluster.Network.VNetName != "hub" {
		t.Errorf("subnet of the class: %+v, %v", got, err)
	}
}

func TestGPUDriverOfNVIDIASizesAlone(t *testing.T) {
	for _, tt := range []struct {
		size   string
		gpus   int64
		none   bool
		driver bool
	}{
		{"Standard_NC24ads_A100_v4", 1, false, true},
		{"Standard_NC24ads_A100_v4", 1, true, false},
		{"Standard_ND96isr_MI300X_v5", 8, false, false},
		{"Standard_D4s_v5", 0, false, false},
	} {
		spec := specOf(size(t, tt.size, "amd64", 24, tt.gpus, 220))
		spec.Class.NoGPUDriver = tt.none
		got, err := Config(cluster(t), spec, group)
		if err != nil {
			t.Fatal(err)
		}
		if got.GPU.EnableNVIDIA != tt.driver || got.GPU.ConfigGPUDriver != tt.driver {
			t.Errorf("%s, mode None %t: %+v, want driver %t", tt.size, tt.none, got.GPU, tt.driver)
		}
	}
}

// TestEverySettingOfTheOSReachesTheNode fills every field of AKS's type, so that one
// that is new there is not lost here.
func TestEverySettingOfTheOSReachesTheNode(t *testing.T) {
	var sysctls armcontainerservice.SysctlConfig
	fields := reflect.ValueOf(&sysctls).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Interface().(type) {
		case *int32:
			f.Set(reflect.ValueOf(ptr(int32(1000 + i)))) //nolint:gosec // a few dozen
		case *bool:
			f.Set(reflect.ValueOf(ptr(true)))
		case *string:
			f.Set(reflect.ValueOf(ptr("32768 60999")))
		default:
			t.Fatalf("field %s has another type", fields.Type().Field(i).Name)
		}
	}
	got := linuxOS(&armcontainerservice.LinuxOSConfig{
		Sysctls: &sysctls, SwapFileSizeMB: ptr(int32(1500)), TransparentHugePageEnabled: ptr("madvise"), TransparentHugePageDefrag: ptr("defer"),
	})
	want := fields.NumField()
	seen := map[string]bool{}
	values := reflect.ValueOf(got.Sysctl).Elem()
	for i := range values.NumField() {
		if f := values.Field(i); !f.IsNil() {
			seen[fmt.Sprint(f.Elem().Interface())] = true
			want--
		}
	}
	if want != 0 || len(seen) != fields.NumField() {
		t.Errorf("%d settings are lost, %d of %d values differ: %+v", want, len(seen), fields.NumField(), got.Sysctl)
	}
	if !got.EnableSwap || got.SwapFileSizeMB != 1500 || got.TransparentHugePageSupport != "madvise" || got.TransparentHugePageDefrag != "defer" {
		t.Errorf("swap and huge pages: %+v", got)
	}
	if linuxOS(nil) != nil {
		t.Error("settings of a class that has none")
	}
}

func TestLocalDNSOfClassReachesTheNode(t *testing.T) {
	class := &nodeclass.NodeClass{LocalDNSProfile: &armcontainerservice.LocalDNSProfile{
		VnetDNSOverrides: map[string]*armcontainerservice.LocalDNSOverride{".": {
			QueryLogging: ptr(armcontainerservice.LocalDNSQueryLoggingLog), Protocol: ptr(armcontainerservice.LocalDNSProtocolForceTCP),
			ForwardDestination: ptr(armcontainerservice.LocalDNSForwardDestinationVnetDNS), ForwardPolicy: ptr(armcontainerservice.LocalDNSForwardPolicyRandom),
			MaxConcurrent: ptr(int32(7)), CacheDurationInSeconds: ptr(int32(8)), ServeStaleDurationInSeconds: ptr(int32(9)),
			ServeStale: ptr(armcontainerservice.LocalDNSServeStaleDisable),
		}},
	}}
	if got := localDNS(class); got != nil {
		t.Errorf("a class whose machines run no cache: %+v", got)
	}
	class.LocalDNS = true
	want := &bootstrap.LocalDNSProfile{
		VNetDNS: map[string]bootstrap.LocalDNSOverride{".": {
			QueryLogging: "Log", Protocol: "ForceTCP", ForwardDestination: "VnetDNS", ForwardPolicy: "Random", MaxConcurrent: ptr(int32(7)),
			CacheDurationSeconds: ptr(int32(8)), ServeStaleDurationSeconds: ptr(int32(9)), ServeStale: "Disable",
		}},
		KubeDNS: map[string]bootstrap.LocalDNSOverride{},
	}
	if diff := cmp.Diff(want, localDNS(class)); diff != "" {
		t.Errorf("LocalDNS (-want +got):\n%s", diff)
	}
}

func TestEndpointAndGroupOfWrongFormAreRefused(t *testing.T) {
	for field, change := range map[string]func(c *config.Config) string{
		"api_server_config.api_server_name": func(c *config.Config) string {
			c.ClusterEndpoint = "https://prod.hcp.eastus.azmk8s.io:6443"
			return group
		},
		"cluster_config.cluster_network_config.route_table": func(*config.Config) string { return "my-group" },
	} {
		c := cluster(t)
		name := change(c)
		_, err := Config(c, specOf(size(t, "Standard_D4s_v5", "amd64", 4, 0, 16)), name)
		var wrong *bootstrap.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%v, want an error of %s", err, field)
		}
	}
}

func TestWhatTheClusterTellsReachesTheNode(t *testing.T) {
	c := cluster(t)
	ca := base64.StdEncoding.EncodeToString(c.ClusterCA)
	c.Facts = managedcluster.Facts{
		FQDN: "prod.hcp.eastus.azmk8s.io", PrivateFQDN: "prod.private.eastus.azmk8s.io", UnattendedUpgrades: true,
		Network: managedcluster.Network{
			IPFamilies: []string{"IPv4", "IPv6"}, OutboundType: "none", LoadBalancerSKU: "basic",
			PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.0.0.0/16", "fd00::/108"},
		},
		Proxy:     managedcluster.Proxy{HTTP: "http://proxy:3128", NoProxy: []string{"10.224.0.0/12", "localhost"}, TrustedCA: ca},
		CustomCAs: []string{ca},
	}
	c.Boot = config.Boot{
		SecureTLS: true, SecureTLSResource: "api://nodes", RestrictIMDS: true, NoSSH: true, PrivateEgressProxy: "10.1.2.3:8443",
		Registry: "prod.azurecr.io/aks-managed-repository", PackagesURL: "https://packages.contoso.com",
	}
	c.Cloud.Environment = &config.Environment{
		RepoDepot: "https://repo.contoso.com/ubuntu", RegistrySuffix: ".registry.contoso.com",
		Document: []byte(`{"resourceManagerEndpoint":"https://management.contoso.com/","graphEndpoint":"https://graph.contoso.com/"}`),
	}
	spec := specOf(size(t, "Standard_D4s_v5", "amd64", 4, 0, 16))
	spec.Class.KubernetesVersion = "1.31.13"
	got, err := Config(c, spec, group)
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		DualStack, Upgrades, IMDS            bool
		SSH                                  *bool
		Outbound, Balancer, Egress, Registry string
		Bootstrapping                        bootstrap.BootstrappingConfig
		Cloud                                bootstrap.CustomCloudConfig
		Proxy                                bootstrap.HTTPProxyConfig
		CAs                                  []string
	}
	want := facts{
		DualStack: true, Upgrades: true, IMDS: true, SSH: ptr(false), Balancer: "LOAD_BALANCER_SKU_BASIC", Egress: "10.1.2.3:8443",
		Registry: "prod.azurecr.io/aks-managed-repository",
		Bootstrapping: bootstrap.BootstrappingConfig{
			AuthMethod: "BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING", ClusterJoinMethod: "CLUSTER_JOIN_METHOD_USE_BOOTSTRAPPING_AUTH",
			TLSBootstrappingToken: c.BootstrapToken, SecureTLSAADResource: "api://nodes", SecureTLSAssignedIdentityID: "id",
		},
		Cloud: bootstrap.CustomCloudConfig{
			Name: "akscustom", RepoDepotEndpoint: "https://repo.contoso.com/ubuntu", ContainerRegistryDNSSuffix: ".registry.contoso.com",
			EnvironmentJSON: base64.StdEncoding.EncodeToString(c.Cloud.Environment.Document),
		},
		Proxy: bootstrap.HTTPProxyConfig{
			HTTPProxy: "http://proxy:3128", HTTPSProxy: "http://proxy:3128", TrustedCA: ca,
			NoProxyEntries: []string{
				"10.224.0.0/12", "localhost", "127.0.0.1", "169.254.169.254", "168.63.129.16", "konnectivity", "prod.hcp.eastus.azmk8s.io",
				"prod.private.eastus.azmk8s.io", "10.244.0.0/16", "10.0.0.0/16", "fd00::/108",
			},
		},
		CAs: []string{ca},
	}
	has := facts{
		DualStack: got.IPv6DualStack, Upgrades: got.EnableUnattendedUpgrade, IMDS: got.IMDSRestriction.Enable, SSH: got.EnableSSH,
		Outbound: got.OutboundCommand, Balancer: got.Cluster.LoadBalancer.SKU, Egress: got.PrivateEgressProxyAddress,
		Registry: got.BootstrapContainerRegistry, Bootstrapping: got.Bootstrapping, Cloud: *got.CustomCloud, Proxy: *got.HTTPProxy, CAs: got.CustomCACerts,
	}
	if diff := cmp.Diff(want, has); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	for _, url := range []string{got.KubeBinary.KubeBinaryURL, got.KubeBinary.LinuxCredentialProviderURL} {
		if !strings.HasPrefix(url, "https://packages.contoso.com/") {
			t.Errorf("the node looks for programs at %s", url)
		}
	}
}

func TestCertificateThatIsNoneIsRefused(t *testing.T) {
	c := cluster(t)
	c.Facts.CustomCAs = []string{"no certificate"}
	_, err := Config(c, specOf(size(t, "Standard_D4s_v5", "amd64", 4, 0, 16)), group)
	var wrong *bootstrap.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "custom_ca_certs[0]" {
		t.Errorf("%v, want an error of custom_ca_certs[0]", err)
	}
}
