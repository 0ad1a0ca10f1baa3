package bootstrap

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/mask"
	"github.com/nodeautoprovision/nap/internal/model"
)

// FieldError says what is wrong with one field of the contract.
type FieldError struct {
	// Field is the path of the field, such as cluster_config.location.
	Field string
	// Problem is the value, and what is wanted.
	Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// problems collects what is wrong, so that one run names every fault.
type problems struct {
	errs []error
}

func (p *problems) refuse(field, format string, args ...any) {
	p.errs = append(p.errs, &FieldError{field, fmt.Sprintf(format, args...)})
}

// required refuses what is empty, and what would break a line of the files that the
// node writes it to.
func (p *problems) required(field, value, what string) {
	switch {
	case value == "":
		p.refuse(field, "is required: %s", what)
	case unquotable.MatchString(value):
		p.refuse(field, "%q must not contain blanks, quotes, backslashes, dollar signs or control characters", mask.Text(value))
	}
}

// optional refuses the same of a value that may be empty.
func (p *problems) optional(field, value string) {
	if value != "" {
		p.required(field, value, "")
	}
}

func (p *problems) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		p.refuse(field, "%q is not allowed; allowed are %q", value, allowed)
	}
}

// The forms of values. The node's scripts put values between double quotes into JSON
// and shell, and flags unquoted into one line of a systemd environment file.
var (
	unquotable      = regexp.MustCompile("[\\s\"'`\\\\$\\x00-\\x1f\\x7f]")
	versionPattern  = regexp.MustCompile(`^v?1\.([0-9]{1,3})\.[0-9]{1,3}$`)
	hostPattern     = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$`)
	tokenPattern    = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	subnetPattern   = regexp.MustCompile(`(?i)^/subscriptions/[^/]+/resourceGroups/([^/]+)/providers/Microsoft\.Network/virtualNetworks/([^/]+)/subnets/([^/]+)$`)
	sizePattern     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	userPattern     = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_]{0,31}$`)
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	prefixPattern   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	logSizePattern  = regexp.MustCompile(`^[0-9]+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$`)
	durationPattern = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m|h))+$`)
	sysctlPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]*\*?$`)
	portsPattern    = regexp.MustCompile(`^[0-9]{1,5} [0-9]{1,5}$`)
	zonePattern     = regexp.MustCompile(`^(\.|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9.])?)$`)
)

// subnet are the names in a subnet's resource id.
type subnet struct {
	group, vnet, name string
}

// check refuses what cannot make a node. It gives what it has read on the way: the
// machine's subnet and the minor version of its Kubernetes.
func check(c *Cluster, n *Node) (subnet, int, error) {
	p := &problems{}
	checkCluster(p, c)
	checkNetwork(p, &c.Network)
	checkTrust(p, c)
	s, minor := checkNode(p, n)
	checkLabelsAndTaints(p, n)
	checkKubelet(p, n)
	checkLocalDNS(p, n.LocalDNS)
	slices.SortStableFunc(p.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return s, minor, errors.Join(p.errs...)
}

func checkCluster(p *problems, c *Cluster) {
	checkAPIServer(p, c.APIServer)
	p.required("auth_config.tenant_id", c.TenantID, "the tenant of the cluster")
	p.required("auth_config.subscription_id", c.SubscriptionID, "the subscription of the cluster")
	p.required("auth_config.assigned_identity_id", c.KubeletIdentityClientID, "the client id of the kubelet identity")
	p.required("cluster_config.resource_group", c.NodeResourceGroup, "the resource group of the cluster's machines")
	p.required("cluster_config.location", c.Location, "the region of the cluster")
	if c.AdminUsername != "" && !userPattern.MatchString(c.AdminUsername) {
		p.refuse("linux_admin_username", "%q must start with a letter and have at most 32 letters, digits, - and _", c.AdminUsername)
	}
	token := "bootstrapping_config.tls_bootstrapping_token"
	switch {
	case c.Join.Token.IsZero() && c.Join.SecureTLS == nil:
		p.refuse(token, "is required: a bootstrap token, where the cluster has no secure TLS bootstrapping")
	case !c.Join.Token.IsZero() && !tokenPattern.MatchString(c.Join.Token.Reveal()):
		p.refuse(token, "is not of the form abcdef.0123456789abcdef")
	}
	if s := c.Join.SecureTLS; s != nil {
		p.optional("bootstrapping_config.secure_tls_bootstrapping_aad_resource", s.AADResource)
		p.optional("bootstrapping_config.secure_tls_bootstrapping_user_assigned_identity_id", s.IdentityClientID)
	}
	p.optional("bootstrap_profile_container_registry_server", c.ContainerRegistry)
	p.optional("private_egress_proxy_address", c.PrivateEgressProxy)
	checkURL(p, "kube_binary_config", c.PackagesURL)
}

// checkAPIServer takes a host name alone: the node makes https://NAME:443 of it.
func checkAPIServer(p *problems, name string) {
	const field = "api_server_config.api_server_name"
	switch {
	case name == "":
		p.refuse(field, "is required: the host name of the API server")
	case !hostPattern.MatchString(name):
		p.refuse(field, "%q must be a host name alone, without scheme, port and path", name)
	}
}

func checkURL(p *problems, field, text string) {
	if text == "" {
		return
	}
	p.required(field, text, "")
	if u, err := url.Parse(text); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		p.refuse(field, "%q is not an http or https URL", mask.Address(text))
	}
}

func checkNetwork(p *problems, n *Network) {
	const network = "cluster_config.cluster_network_config."
	p.oneOf("network_config.network_plugin", n.Plugin, "azure", "none")
	p.oneOf("network_config.network_plugin (mode)", n.Mode, "", "overlay")
	p.oneOf("network_config.network_plugin (dataplane)", n.Dataplane, "", "azure", "cilium")
	p.oneOf("network_config.network_policy", n.Policy, "", "azure", "calico", "cilium", "none")
	if n.Plugin == "none" && n.Mode != "" {
		p.refuse("network_config.network_plugin (mode)", "%q is not allowed with plugin none", n.Mode)
	}
	p.required(network+"security_group_name", n.SecurityGroup, "the network security group of the machines' subnet")
	p.required(network+"route_table", n.RouteTable, "the route table of the machines' subnet")
	if _, err := netip.ParseAddr(n.DNSServiceIP); err != nil {
		p.refuse(network+"core_dns_service_ip", "%q is not an IP address: the address of the cluster's DNS", n.DNSServiceIP)
	}
}

// checkTrust checks certificates, the proxy and the cloud.
func checkTrust(p *problems, c *Cluster) {
	checkPEM(p, "kubernetes_ca_cert", c.CA)
	for i, ca := range c.CustomCAs {
		checkPEM(p, fmt.Sprintf("custom_ca_certs[%d]", i), ca)
	}
	if x := c.Proxy; x != nil {
		if x.HTTP == "" && x.HTTPS == "" {
			p.refuse("http_proxy_config", "needs http_proxy or https_proxy")
		}
		checkURL(p, "http_proxy_config.http_proxy", x.HTTP)
		checkURL(p, "http_proxy_config.https_proxy", x.HTTPS)
		for i, entry := range x.NoProxy {
			p.required(fmt.Sprintf("http_proxy_config.no_proxy_entries[%d]", i), entry, "a host, domain or network")
		}
		if len(x.TrustedCA) > 0 {
			checkPEM(p, "http_proxy_config.proxy_trusted_ca", x.TrustedCA)
		}
	}
	if x := c.CustomCloud; x != nil {
		if len(x.Environment) == 0 {
			p.refuse("custom_cloud_config.custom_env_json_content", "is required: the endpoints of the cloud")
		}
		checkURL(p, "custom_cloud_config.repo_depot_endpoint", x.RepoDepot)
		p.optional("custom_cloud_config.container_registry_dns_suffix", x.RegistrySuffix)
		p.optional("outbound_command", x.Registry)
	}
}

// checkPEM takes one or more certificates, and nothing else.
func checkPEM(p *problems, field string, text []byte) {
	rest, found := text, 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			p.refuse(field, "has a PEM block %q; only certificates are allowed", block.Type)
			return
		}
		found++
	}
	switch {
	case len(text) == 0:
		p.refuse(field, "is required: certificates in PEM")
	case found == 0 || strings.TrimSpace(string(rest)) != "":
		p.refuse(field, "is not PEM certificates alone")
	}
}

func checkNode(p *problems, n *Node) (subnet, int) {
	const network = "cluster_config.cluster_network_config."
	minor := 0
	if m := versionPattern.FindStringSubmatch(n.KubernetesVersion); m == nil {
		p.refuse("kubernetes_version", "%q is not of the form 1.34.2", n.KubernetesVersion)
	} else if minor, _ = strconv.Atoi(m[1]); minor < oldestMinor {
		p.refuse("kubernetes_version", "%s is older than 1.%d, the oldest that node images carry", n.KubernetesVersion, oldestMinor)
	}
	if !sizePattern.MatchString(n.Size) {
		p.refuse("vm_size", "%q is no VM size", n.Size)
	}
	p.oneOf("kube_binary_config (architecture)", n.Arch, "amd64", "arm64")
	m := subnetPattern.FindStringSubmatch(n.SubnetID)
	if m == nil {
		p.refuse(network+"vnet_name", "%q is not the resource id of a subnet", n.SubnetID)
		return subnet{}, minor
	}
	s := subnet{group: m[1], vnet: m[2], name: m[3]}
	p.optional(network+"vnet_resource_group", s.group)
	p.optional(network+"vnet_name", s.vnet)
	p.optional(network+"subnet", s.name)
	return s, minor
}

func checkLabelsAndTaints(p *problems, n *Node) {
	for key, value := range n.Labels {
		field := "kubelet_config.kubelet_node_labels[" + key + "]"
		if !validKey(key) {
			p.refuse(field, "the key is no label key")
		}
		if value != "" && !namePattern.MatchString(value) {
			p.refuse(field, "%q is no label value", value)
		}
	}
	const taints = "kubelet_config.kubelet_flags[--register-with-taints]"
	for _, t := range n.Taints {
		if !validKey(t.Key) || t.Value != "" && !namePattern.MatchString(t.Value) {
			p.refuse(taints, "%q is no taint", t.String())
		}
		p.oneOf(taints, string(t.Effect), string(model.NoSchedule), string(model.PreferNoSchedule), string(model.NoExecute))
	}
}

// validKey reports whether Kubernetes takes the key of a label or taint: a name, with
// a DNS domain before a slash or without.
func validKey(key string) bool {
	const longestDomain = 253
	domain, name, ok := strings.Cut(key, "/")
	if !ok {
		return namePattern.MatchString(key)
	}
	return len(domain) <= longestDomain && prefixPattern.MatchString(domain) && namePattern.MatchString(name)
}

// flagField is the field of a kubelet flag.
func flagField(name string) string { return "kubelet_config.kubelet_flags[--" + name + "]" }

func checkKubelet(p *problems, n *Node) {
	if n.MaxPods < 1 {
		p.refuse(flagField("max-pods"), "%d is no number of pods", n.MaxPods)
	}
	if n.Reserved.CPUMillis <= 0 || n.Reserved.MemoryMiB <= 0 {
		p.refuse(flagField("kube-reserved"), "cpu %dm and memory %dMi must be above 0", n.Reserved.CPUMillis, n.Reserved.MemoryMiB)
	}
	if e := n.Eviction; e.MemoryMiB <= 0 || !percentage(e.DiskPercent) || !percentage(e.InodesPercent) {
		p.refuse(flagField("eviction-hard"), "memory %dMi must be above 0, disk %d%% and inodes %d%% above 0 and below 100",
			e.MemoryMiB, e.DiskPercent, e.InodesPercent)
	}
	p.optional(flagField("provider-id"), n.ProviderID)
	checkKubeletSettings(p, &n.Kubelet)
	if n.LinuxOS != nil {
		checkLinuxOS(p, n.LinuxOS, n.Kubelet.FailSwapOn)
	}
}

func percentage(n int64) bool { return n > 0 && n < 100 }

func checkKubeletSettings(p *problems, k *Kubelet) {
	const fewestFiles = 2
	p.oneOf(flagField("cpu-manager-policy"), k.CPUManagerPolicy, "", "none", "static")
	p.oneOf(flagField("topology-manager-policy"), k.TopologyManagerPolicy, "", "none", "best-effort", "restricted", "single-numa-node")
	if k.CPUCFSQuotaPeriod != "" && !durationPattern.MatchString(k.CPUCFSQuotaPeriod) {
		p.refuse(flagField("cpu-cfs-quota-period"), "%q is no duration, such as 100ms", k.CPUCFSQuotaPeriod)
	}
	high, low := or(k.ImageGCHighThresholdPercent, defaultImageGCHighPercent), or(k.ImageGCLowThresholdPercent, defaultImageGCLowPercent)
	if low < 0 || high > 100 || low >= high {
		p.refuse(flagField("image-gc-high-threshold"), "%d must be at most 100 and above --image-gc-low-threshold, %d, which must be at least 0",
			high, low)
	}
	for _, name := range k.AllowedUnsafeSysctls {
		if !sysctlPattern.MatchString(name) {
			p.refuse(flagField("allowed-unsafe-sysctls"), "%q is no kernel parameter, nor the start of some with *", name)
		}
	}
	if k.ContainerLogMaxSize != "" && !logSizePattern.MatchString(k.ContainerLogMaxSize) {
		p.refuse(flagField("container-log-max-size"), "%q is no quantity, such as 50Mi", k.ContainerLogMaxSize)
	}
	if files := or(k.ContainerLogMaxFiles, fewestFiles); files < fewestFiles {
		p.refuse(flagField("container-log-max-files"), "%d must be at least %d", files, fewestFiles)
	}
	if pids := or(k.PodPidsLimit, -1); pids < -1 {
		p.refuse(flagField("pod-max-pids"), "%d must be at least -1", pids)
	}
}

// or is the value behind a pointer, or a default.
func or[T any](p *T, unset T) T {
	if p == nil {
		return unset
	}
	return *p
}

func checkLinuxOS(p *problems, x *CustomLinuxOSConfig, failSwapOn *bool) {
	const field = "custom_linux_os_config."
	switch {
	case x.SwapFileSizeMB < 0:
		p.refuse(field+"swap_file_size", "%d must not be negative", x.SwapFileSizeMB)
	case x.EnableSwap != (x.SwapFileSizeMB > 0):
		p.refuse(field+"enable_swap_config", "%t does not go with a swap_file_size of %d", x.EnableSwap, x.SwapFileSizeMB)
	case x.EnableSwap && or(failSwapOn, true):
		p.refuse(field+"swap_file_size", "%d needs the kubelet's failSwapOn to be false", x.SwapFileSizeMB)
	}
	p.oneOf(field+"transparent_hugepage_support", x.TransparentHugePageSupport, "", "always", "madvise", "never")
	p.oneOf(field+"transparent_defrag", x.TransparentHugePageDefrag, "", "always", "defer", "defer+madvise", "madvise", "never")
	if x.Sysctl != nil {
		if ports := or(x.Sysctl.NetIPv4IPLocalPortRange, "32768 60999"); !portsPattern.MatchString(ports) {
			p.refuse(field+"sysctl_config.net_ipv4_ip_local_port_range", "%q is not of the form \"32768 60999\"", ports)
		}
	}
}

func checkLocalDNS(p *problems, profile *LocalDNSProfile) {
	if profile == nil {
		return
	}
	for zone, o := range profile.VNetDNS {
		checkZone(p, "local_dns_profile.vnet_dns_overrides", zone, o)
	}
	for zone, o := range profile.KubeDNS {
		checkZone(p, "local_dns_profile.kube_dns_overrides", zone, o)
	}
}

func checkZone(p *problems, side, zone string, o LocalDNSOverride) {
	field := side + "[" + zone + "]"
	if !zonePattern.MatchString(zone) {
		p.refuse(field, "%q is no DNS zone", zone)
	}
	p.oneOf(field+".query_logging", o.QueryLogging, "", defaultLogging, "Log")
	p.oneOf(field+".protocol", o.Protocol, "", protocolUDP, protocolTCP)
	p.oneOf(field+".forward_destination", o.ForwardDestination, "", destinationVNet, destinationClusterDNS)
	p.oneOf(field+".forward_policy", o.ForwardPolicy, "", defaultPolicy, "RoundRobin", "Random")
	p.oneOf(field+".serve_stale", o.ServeStale, "", staleVerify, defaultServeStale, "Disable")
	if o.ServeStale == staleVerify && o.Protocol == protocolTCP {
		p.refuse(field+".serve_stale", "Verify does not go with protocol ForceTCP")
	}
	for name, value := range map[string]*int32{
		"max_concurrent": o.MaxConcurrent, "cache_duration_in_seconds": o.CacheDurationSeconds,
		"serve_stale_duration_in_seconds": o.ServeStaleDurationSeconds,
	} {
		if or(value, 0) < 0 {
			p.refuse(field+"."+name, "%d must not be negative", *value)
		}
	}
}
