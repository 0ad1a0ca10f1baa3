package bootstrap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/model"
)

// drawCluster is any cluster that there may be.
func drawCluster(rt *rapid.T, t testing.TB) Cluster {
	c := overlay(t)
	c.Location = rapid.SampledFrom([]string{"eastus", "usgovvirginia", "chinanorth3", "westeurope", "region1"}).Draw(rt, "location")
	c.APIServer = rapid.StringMatching(`[a-z][a-z0-9-]{0,20}[a-z0-9](\.[a-z0-9]{1,10}){1,4}`).Draw(rt, "server")
	network := rapid.SampledFrom([]Network{
		{Plugin: "azure", Mode: "overlay", Dataplane: "cilium", Policy: "cilium"}, {Plugin: "azure", Mode: "overlay", Policy: "calico"},
		{Plugin: "azure", Dataplane: "azure", Policy: "azure"}, {Plugin: "azure", Dataplane: "cilium", Policy: "none"}, {Plugin: "none"},
	}).Draw(rt, "network")
	network.SecurityGroup, network.RouteTable, network.DNSServiceIP = c.Network.SecurityGroup, c.Network.RouteTable, c.Network.DNSServiceIP
	network.DualStack, network.NoOutbound = rapid.Bool().Draw(rt, "dual stack"), rapid.Bool().Draw(rt, "no outbound")
	c.Network = network
	if rapid.Bool().Draw(rt, "secure TLS") {
		c.Join.SecureTLS = &SecureTLS{}
		c.Join.Token = rapid.SampledFrom([]jointoken.Token{{}, c.Join.Token}).Draw(rt, "token")
	}
	if rapid.Bool().Draw(rt, "proxy") {
		c.Proxy = &Proxy{HTTP: "http://proxy:3128", NoProxy: []string{"10.0.0.0/8", rapid.StringMatching(`[a-z.]{1,9}`).Draw(rt, "no proxy")}}
	}
	pem := readFile(t, "testdata/ca.crt")
	for range rapid.IntRange(0, 60).Draw(rt, "custom CAs") {
		c.CustomCAs = append(c.CustomCAs, pem)
	}
	if rapid.Bool().Draw(rt, "custom cloud") {
		c.CustomCloud = &CustomCloud{Environment: []byte(`{"name":"x"}`), Registry: rapid.SampledFrom([]string{"", "mcr.x"}).Draw(rt, "registry")}
	}
	c.RestrictIMDS, c.UnattendedUpgrades = rapid.Bool().Draw(rt, "IMDS"), rapid.Bool().Draw(rt, "upgrades")
	return c
}

// drawNode is any machine that there may be.
func drawNode(rt *rapid.T) Node {
	n := general(fmt.Sprintf("1.%d.%d", rapid.IntRange(oldestMinor, 40).Draw(rt, "minor"), rapid.IntRange(0, 30).Draw(rt, "patch")))
	n.Arch = rapid.SampledFrom([]string{"amd64", "arm64"}).Draw(rt, "arch")
	n.MaxPods = rapid.IntRange(10, 250).Draw(rt, "pods")
	n.NVIDIADriver, n.ArtifactStreaming = rapid.Bool().Draw(rt, "driver"), rapid.Bool().Draw(rt, "streaming")
	key := rapid.StringMatching(`([a-z0-9]{1,9}(\.[a-z]{1,4}){0,2}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`)
	value := rapid.StringMatching(`([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?`)
	for _, k := range rapid.SliceOfN(key, 0, 10).Draw(rt, "label keys") {
		n.Labels[k] = value.Draw(rt, "label value")
	}
	for _, k := range rapid.SliceOfN(key, 0, 5).Draw(rt, "taint keys") {
		effect := rapid.SampledFrom([]model.TaintEffect{model.NoSchedule, model.PreferNoSchedule, model.NoExecute}).Draw(rt, "effect")
		n.Taints = append(n.Taints, model.Taint{Key: k, Value: value.Draw(rt, "taint value"), Effect: effect})
	}
	k := &n.Kubelet
	k.CPUManagerPolicy = rapid.SampledFrom([]string{"", "none", "static"}).Draw(rt, "cpu manager")
	if rapid.Bool().Draw(rt, "gc") {
		low := rapid.Int32Range(0, 99).Draw(rt, "low")
		k.ImageGCLowThresholdPercent, k.ImageGCHighThresholdPercent = &low, ptr(rapid.Int32Range(low+1, 100).Draw(rt, "high"))
	}
	if rapid.Bool().Draw(rt, "swap") {
		k.FailSwapOn = ptr(false)
		n.LinuxOS = &CustomLinuxOSConfig{EnableSwap: true, SwapFileSizeMB: rapid.Int32Range(1, 1<<20).Draw(rt, "swap MB")}
	}
	if rapid.Bool().Draw(rt, "LocalDNS") {
		n.LocalDNS = &LocalDNSProfile{VNetDNS: map[string]LocalDNSOverride{
			rapid.SampledFrom([]string{".", "cluster.local", "contoso.com", "a.cluster.local."}).Draw(rt, "zone"): {
				ServeStale:    rapid.SampledFrom([]string{"", "Verify", "Immediate", "Disable"}).Draw(rt, "stale"),
				MaxConcurrent: ptr(rapid.Int32Range(0, 1000).Draw(rt, "concurrent")),
			},
		}}
	}
	return n
}

// required are the fields without which no machine becomes a node: those that the node
// itself demands, and those without which it boots in vain.
func required(c *Config) map[string]string {
	return map[string]string{
		"version": c.Version, "kubernetes_version": c.KubernetesVersion, "vm_size": c.VMSize, "kubernetes_ca_cert": c.KubernetesCACert,
		"linux_admin_username": c.LinuxAdminUsername, "api_server_name": c.APIServer.Name, "tenant_id": c.Auth.TenantID,
		"subscription_id": c.Auth.SubscriptionID, "assigned_identity_id": c.Auth.AssignedIdentityID, "resource_group": c.Cluster.ResourceGroup,
		"location": c.Cluster.Location, "vm_type": c.Cluster.VMType, "vnet_name": c.Cluster.Network.VNetName,
		"vnet_resource_group": c.Cluster.Network.VNetResourceGroup, "subnet": c.Cluster.Network.Subnet,
		"security_group_name": c.Cluster.Network.SecurityGroupName, "route_table": c.Cluster.Network.RouteTable,
		"core_dns_service_ip": c.Cluster.Network.CoreDNSServiceIP, "auth method": c.Bootstrapping.AuthMethod,
		"join method": c.Bootstrapping.ClusterJoinMethod, "network_plugin": c.Network.Plugin, "disk type": c.Kubelet.DiskType,
		"pod_infra_container_image_url": c.KubeBinary.PodInfraContainerImageURL,
		"credential":                    c.Bootstrapping.TLSBootstrappingToken.Reveal() + strings.TrimPrefix(c.Bootstrapping.AuthMethod, authToken),
	}
}

var flagPattern = regexp.MustCompile(`^--[a-z]+(-[a-z]+)*$`)

func TestPropertyEveryConfigurationIsComplete(t *testing.T) {
	published := readContract(t)
	rapid.Check(t, func(rt *rapid.T) {
		c, n := drawCluster(rt, t), drawNode(rt)
		config, err := New(c, n)
		if err != nil {
			rt.Fatalf("a cluster and a machine that may be: %v", err)
		}
		for field, value := range required(config) {
			if value == "" {
				rt.Errorf("%s is empty", field)
			}
		}
		if !config.IsVHD || !config.NeedsCgroupV2 || !config.Auth.UseManagedIdentityExtension || !config.Cluster.UseInstanceMetadata {
			rt.Errorf("a fixed value is not set: %+v", config)
		}
		for flag, value := range config.Kubelet.Flags {
			if !flagPattern.MatchString(flag) || value == "" || unquotable.MatchString(value) {
				rt.Errorf("flag %s=%q", flag, value)
			}
		}
		if dns := config.Kubelet.Flags["--cluster-dns"]; (dns == localDNSAddress) != (config.LocalDNS != nil) {
			rt.Errorf("pods ask %s for names, the node's cache is %v", dns, config.LocalDNS)
		}
		for key := range config.Kubelet.NodeLabels {
			if !MayLabelItself(key) || len(key) > longestLabelKey {
				rt.Errorf("the kubelet may not set label %s", key)
			}
		}
		if taints := config.Kubelet.Flags["--register-with-taints"]; !strings.HasPrefix(taints, "karpenter.sh/unregistered:NoExecute") {
			rt.Errorf("taints %s", taints)
		}
		checkCustomData(rt, published, config)
	})
}

// checkCustomData reads custom data as the image does, down to the configuration.
func checkCustomData(rt *rapid.T, published contract, config *Config) {
	encoded, err := config.CustomData()
	var long *TooLongError
	if errors.As(err, &long) {
		if long.Bytes <= MaxCustomDataBytes || !strings.Contains(err.Error(), "remove some of the cluster's") {
			rt.Errorf("%v", err)
		}
		return
	}
	data, decodeErr := base64.StdEncoding.DecodeString(encoded)
	if err != nil || decodeErr != nil || len(data) > MaxCustomDataBytes {
		rt.Fatalf("%d bytes, %v, %v", len(data), err, decodeErr)
	}
	line := configOf(rt, data)
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		rt.Fatal(err)
	}
	if problems := published.check("", "Configuration", value); len(problems) > 0 {
		rt.Error(problems)
	}
	if want, err := config.JSON(); err != nil || !bytes.Equal(line, want) {
		rt.Errorf("the machine reads another configuration, %v", err)
	}
}

// fatal is what reading custom data needs of a test.
type fatal interface{ Fatalf(string, ...any) }

// configOf reads the two parts of custom data and gives what the first one writes.
func configOf(t fatal, data []byte) []byte {
	message, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("custom data are no MIME document: %v", err)
	}
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatalf("content type %s: %v", kind, err)
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	var kinds []string
	var out []byte
	for {
		part, err := parts.NextPart()
		if err != nil {
			break
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		kinds = append(kinds, kind)
		var text bytes.Buffer
		if _, err := text.ReadFrom(part); err != nil {
			t.Fatalf("read %s: %v", kind, err)
		}
		if kind == "text/cloud-boothook" {
			_, rest, _ := strings.Cut(text.String(), "base64 -d >"+ConfigPath+" <<'EOF'\n")
			encoded, _, found := strings.Cut(rest, "\nEOF\n")
			if out, err = base64.StdEncoding.DecodeString(encoded); err != nil || !found {
				t.Fatalf("the boothook writes no configuration: %v", err)
			}
		}
	}
	if !slices.Equal(kinds, []string{"text/cloud-boothook", "text/cloud-config"}) {
		t.Fatalf("parts %v", kinds)
	}
	return out
}

// fault is one thing that is wrong with a cluster or a machine, and the field by which
// it is refused.
type fault struct {
	field  string
	change func(c *Cluster, n *Node)
}

func faults() []fault {
	network := "cluster_config.cluster_network_config."
	return slices.Concat(clusterFaults(network), nodeFaults(network), settingFaults())
}

func clusterFaults(network string) []fault {
	return []fault{
		{"api_server_config.api_server_name", func(c *Cluster, _ *Node) { c.APIServer = "" }},
		{"api_server_config.api_server_name", func(c *Cluster, _ *Node) { c.APIServer = "https://prod.azmk8s.io" }},
		{"api_server_config.api_server_name", func(c *Cluster, _ *Node) { c.APIServer = "prod.azmk8s.io:443" }},
		{"api_server_config.api_server_name", func(c *Cluster, _ *Node) { c.APIServer = "prod.azmk8s.io/" }},
		{"kubernetes_ca_cert", func(c *Cluster, _ *Node) { c.CA = nil }},
		{"kubernetes_ca_cert", func(c *Cluster, _ *Node) { c.CA = []byte("no PEM") }},
		{"kubernetes_ca_cert", func(c *Cluster, _ *Node) {
			c.CA = []byte("-----BEGIN " + "PRIVATE KEY-----\nAAAA\n-----END " + "PRIVATE KEY-----\n")
		}},
		{"auth_config.tenant_id", func(c *Cluster, _ *Node) { c.TenantID = "" }},
		{"auth_config.subscription_id", func(c *Cluster, _ *Node) { c.SubscriptionID = "" }},
		{"auth_config.assigned_identity_id", func(c *Cluster, _ *Node) { c.KubeletIdentityClientID = "" }},
		{"cluster_config.resource_group", func(c *Cluster, _ *Node) { c.NodeResourceGroup = "" }},
		{"cluster_config.resource_group", func(c *Cluster, _ *Node) { c.NodeResourceGroup = `MC"` }},
		{"cluster_config.location", func(c *Cluster, _ *Node) { c.Location = "" }},
		{"linux_admin_username", func(c *Cluster, _ *Node) { c.AdminUsername = "1st" }},
		{"bootstrapping_config.tls_bootstrapping_token", func(c *Cluster, _ *Node) { c.Join = Join{} }},
		{"bootstrapping_config.tls_bootstrapping_token", func(c *Cluster, _ *Node) { c.Join.Token = jointoken.New("abcdef") }},
		{"bootstrapping_config.secure_tls_bootstrapping_aad_resource", func(c *Cluster, _ *Node) { c.Join.SecureTLS = &SecureTLS{AADResource: "a b"} }},
		{"network_config.network_plugin", func(c *Cluster, _ *Node) { c.Network.Plugin, c.Network.Mode = "kubenet", "" }},
		{"network_config.network_plugin (mode)", func(c *Cluster, _ *Node) { c.Network.Plugin, c.Network.Mode = "none", "overlay" }},
		{"network_config.network_plugin (mode)", func(c *Cluster, _ *Node) { c.Network.Plugin, c.Network.Mode = "azure", "transparent" }},
		{"network_config.network_plugin (dataplane)", func(c *Cluster, _ *Node) { c.Network.Dataplane = "ebpf" }},
		{"network_config.network_policy", func(c *Cluster, _ *Node) { c.Network.Policy = "weave" }},
		{network + "security_group_name", func(c *Cluster, _ *Node) { c.Network.SecurityGroup = "" }},
		{network + "route_table", func(c *Cluster, _ *Node) { c.Network.RouteTable = "" }},
		{network + "core_dns_service_ip", func(c *Cluster, _ *Node) { c.Network.DNSServiceIP = "" }},
		{"custom_ca_certs[0]", func(c *Cluster, _ *Node) { c.CustomCAs = [][]byte{nil} }},
		{"http_proxy_config", func(c *Cluster, _ *Node) { c.Proxy = &Proxy{} }},
		{"http_proxy_config.http_proxy", func(c *Cluster, _ *Node) { c.Proxy = &Proxy{HTTP: "proxy:3128"} }},
		{"http_proxy_config.no_proxy_entries[0]", func(c *Cluster, _ *Node) { c.Proxy = &Proxy{HTTP: "http://p", NoProxy: []string{"$(reboot)"}} }},
		{"http_proxy_config.proxy_trusted_ca", func(c *Cluster, _ *Node) { c.Proxy = &Proxy{HTTP: "http://p", TrustedCA: []byte("x")} }},
		{"custom_cloud_config.custom_env_json_content", func(c *Cluster, _ *Node) { c.CustomCloud = &CustomCloud{} }},
		{"kube_binary_config", func(c *Cluster, _ *Node) { c.PackagesURL = "packages.contoso.com" }},
		{"bootstrap_profile_container_registry_server", func(c *Cluster, _ *Node) { c.ContainerRegistry = "a b" }},
		{"private_egress_proxy_address", func(c *Cluster, _ *Node) { c.PrivateEgressProxy = "`x`" }},
	}
}

func nodeFaults(network string) []fault {
	const flags = "kubelet_config.kubelet_flags"
	return []fault{
		{"kubernetes_version", func(_ *Cluster, n *Node) { n.KubernetesVersion = "" }},
		{"kubernetes_version", func(_ *Cluster, n *Node) { n.KubernetesVersion = "1.34" }},
		{"kubernetes_version", func(_ *Cluster, n *Node) { n.KubernetesVersion = "1.27.3" }},
		{"vm_size", func(_ *Cluster, n *Node) { n.Size = "" }},
		{"kube_binary_config (architecture)", func(_ *Cluster, n *Node) { n.Arch = "x64" }},
		{network + "vnet_name", func(_ *Cluster, n *Node) { n.SubnetID = "" }},
		{network + "vnet_name", func(_ *Cluster, n *Node) { n.SubnetID = "aks-subnet" }},
		{flags + "[--max-pods]", func(_ *Cluster, n *Node) { n.MaxPods = 0 }},
		{flags + "[--kube-reserved]", func(_ *Cluster, n *Node) { n.Reserved.CPUMillis = 0 }},
		{flags + "[--kube-reserved]", func(_ *Cluster, n *Node) { n.Reserved.MemoryMiB = -1 }},
		{flags + "[--eviction-hard]", func(_ *Cluster, n *Node) { n.Eviction.MemoryMiB = 0 }},
		{flags + "[--eviction-hard]", func(_ *Cluster, n *Node) { n.Eviction.DiskPercent = 100 }},
		{flags + "[--eviction-hard]", func(_ *Cluster, n *Node) { n.Eviction.InodesPercent = 0 }},
		{flags + "[--provider-id]", func(_ *Cluster, n *Node) { n.ProviderID = "azure:// x" }},
		{flags + "[--register-with-taints]", func(_ *Cluster, n *Node) { n.Taints = []model.Taint{{Key: "a b", Effect: model.NoSchedule}} }},
		{flags + "[--register-with-taints]", func(_ *Cluster, n *Node) { n.Taints = []model.Taint{{Key: "a", Effect: "Never"}} }},
		{"kubelet_config.kubelet_node_labels[a=b]", func(_ *Cluster, n *Node) { n.Labels["a=b"] = "c" }},
		{"kubelet_config.kubelet_node_labels[team]", func(_ *Cluster, n *Node) { n.Labels["team"] = "blue,green" }},
	}
}

func settingFaults() []fault {
	const flags, system, dns = "kubelet_config.kubelet_flags", "custom_linux_os_config.", "local_dns_profile.vnet_dns_overrides[.]"
	zone := func(o LocalDNSOverride) func(*Cluster, *Node) {
		return func(_ *Cluster, n *Node) { n.LocalDNS = &LocalDNSProfile{VNetDNS: map[string]LocalDNSOverride{".": o}} }
	}
	return []fault{
		{flags + "[--cpu-manager-policy]", func(_ *Cluster, n *Node) { n.Kubelet.CPUManagerPolicy = "dynamic" }},
		{flags + "[--topology-manager-policy]", func(_ *Cluster, n *Node) { n.Kubelet.TopologyManagerPolicy = "best" }},
		{flags + "[--cpu-cfs-quota-period]", func(_ *Cluster, n *Node) { n.Kubelet.CPUCFSQuotaPeriod = "100" }},
		{flags + "[--image-gc-high-threshold]", func(_ *Cluster, n *Node) {
			n.Kubelet.ImageGCLowThresholdPercent, n.Kubelet.ImageGCHighThresholdPercent = nil, ptr(int32(70))
		}},
		{flags + "[--image-gc-high-threshold]", func(_ *Cluster, n *Node) { n.Kubelet.ImageGCHighThresholdPercent = ptr(int32(101)) }},
		{flags + "[--allowed-unsafe-sysctls]", func(_ *Cluster, n *Node) { n.Kubelet.AllowedUnsafeSysctls = []string{"a,b"} }},
		{flags + "[--container-log-max-size]", func(_ *Cluster, n *Node) { n.Kubelet.ContainerLogMaxSize = "big" }},
		{flags + "[--container-log-max-files]", func(_ *Cluster, n *Node) { n.Kubelet.ContainerLogMaxFiles = ptr(int32(1)) }},
		{flags + "[--pod-max-pids]", func(_ *Cluster, n *Node) { n.Kubelet.PodPidsLimit = ptr(int64(-2)) }},
		{system + "swap_file_size", func(_ *Cluster, n *Node) {
			n.Kubelet.FailSwapOn = nil
			n.LinuxOS = &CustomLinuxOSConfig{EnableSwap: true, SwapFileSizeMB: 100}
		}},
		{system + "swap_file_size", func(_ *Cluster, n *Node) { n.LinuxOS = &CustomLinuxOSConfig{SwapFileSizeMB: -1} }},
		{system + "enable_swap_config", func(_ *Cluster, n *Node) { n.LinuxOS = &CustomLinuxOSConfig{EnableSwap: true} }},
		{system + "transparent_hugepage_support", func(_ *Cluster, n *Node) { n.LinuxOS = &CustomLinuxOSConfig{TransparentHugePageSupport: "on"} }},
		{system + "transparent_defrag", func(_ *Cluster, n *Node) { n.LinuxOS = &CustomLinuxOSConfig{TransparentHugePageDefrag: "on"} }},
		{system + "sysctl_config.net_ipv4_ip_local_port_range", func(_ *Cluster, n *Node) {
			n.LinuxOS = &CustomLinuxOSConfig{Sysctl: &SysctlConfig{NetIPv4IPLocalPortRange: ptr("32768-60999")}}
		}},
		{"local_dns_profile.kube_dns_overrides[a b]", func(_ *Cluster, n *Node) {
			n.LocalDNS = &LocalDNSProfile{KubeDNS: map[string]LocalDNSOverride{"a b": {}}}
		}},
		{dns + ".query_logging", zone(LocalDNSOverride{QueryLogging: "All"})},
		{dns + ".protocol", zone(LocalDNSOverride{Protocol: "UDP"})},
		{dns + ".forward_destination", zone(LocalDNSOverride{ForwardDestination: "8.8.8.8"})},
		{dns + ".forward_policy", zone(LocalDNSOverride{ForwardPolicy: "First"})},
		{dns + ".serve_stale", zone(LocalDNSOverride{ServeStale: "Yes"})},
		{dns + ".serve_stale", zone(LocalDNSOverride{ServeStale: "Verify", Protocol: "ForceTCP"})},
		{dns + ".max_concurrent", zone(LocalDNSOverride{MaxConcurrent: ptr(int32(-1))})},
		{dns + ".cache_duration_in_seconds", zone(LocalDNSOverride{CacheDurationSeconds: ptr(int32(-1))})},
		{dns + ".serve_stale_duration_in_seconds", zone(LocalDNSOverride{ServeStaleDurationSeconds: ptr(int32(-1))})},
	}
}

// names are the fields that an error names.
func names(err error) []string {
	var many interface{ Unwrap() []error }
	var out []string
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			var wrong *FieldError
			if errors.As(e, &wrong) {
				out = append(out, wrong.Field)
			}
		}
	}
	return out
}

func TestEveryFaultIsRefusedByField(t *testing.T) {
	for i, f := range faults() {
		c, n := overlay(t), general("1.34.2")
		f.change(&c, &n)
		config, err := New(c, n)
		if got := names(err); config != nil || len(got) != 1 || got[0] != f.field {
			t.Errorf("fault %d: fields %v, want %s alone: %v", i, got, f.field, err)
		}
	}
}

// Refusals become conditions and events.
func TestRefusedProxyIsShownWithoutPassword(t *testing.T) {
	for _, address := range []string{"me:swordfish@proxy:3128", "ftp://me:swordfish@proxy", "swordfish@proxy", "http://me:sword swordfish@proxy:3128",
		"http://me:swordfish/@proxy:31z"} {
		c, n := overlay(t), general("1.34.2")
		c.Proxy = &Proxy{HTTP: address}
		_, err := New(c, n)
		if err == nil || strings.Contains(err.Error(), "sword") || !strings.Contains(err.Error(), "***@proxy") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPropertyNothingInvalidPasses(t *testing.T) {
	all := faults()
	rapid.Check(t, func(rt *rapid.T) {
		c, n := drawCluster(rt, t), drawNode(rt)
		chosen := rapid.IntRange(0, len(all)-1).Draw(rt, "fault")
		all[chosen].change(&c, &n)
		config, err := New(c, n)
		if config != nil || !slices.Contains(names(err), all[chosen].field) {
			rt.Errorf("want %s refused, got %v", all[chosen].field, err)
		}
	})
}

func TestCustomDataOverTheLimitIsRefusedWithAdvice(t *testing.T) {
	c, n := overlay(t), general("1.34.2")
	fillCustomData(t, &c, &n)
	c.CustomCAs = append(c.CustomCAs, readFile(t, "testdata/contoso.crt"))
	config, err := New(c, n)
	if err != nil {
		t.Fatal(err)
	}
	_, err = config.CustomData()
	var long *TooLongError
	if !errors.As(err, &long) || long.Bytes <= 65535 || !strings.Contains(err.Error(), "custom CA certificates (az aks update") {
		t.Errorf("%v", err)
	}
	c.CustomCAs, n.Labels = nil, map[string]string{}
	for i := range 1000 {
		n.Labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 63)
	}
	if config, err = New(c, n); err != nil {
		t.Fatal(err)
	}
	if _, err = config.CustomData(); !errors.As(err, &long) || !strings.Contains(err.Error(), "labels and taints") {
		t.Errorf("%v", err)
	}
}
