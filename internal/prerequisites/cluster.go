package prerequisites

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/mask"
)

// clusterRows are those that the managed cluster alone answers.
func clusterRows() []Row {
	row := func(number int, name, wants, why string, worst Verdict, blocks bool, check func(*managedcluster.Facts) answer) Row {
		return Row{
			Number: number, Name: name, Wants: wants, Why: why, Worst: worst, Blocks: blocks, needs: needsCluster,
			check: func(f *Facts) answer { return check(f.Cluster) },
		}
	}
	return []Row{
		row(1, "kubernetes-version", "The control plane runs Kubernetes 1.26 or later, whose version Azure and the API server tell",
			"Karpenter's and nap's objects need it, and node images exist for supported versions alone.", Failed, false, kubernetesVersion),
		row(2, rowManagedMode, "AKS's own node auto-provisioning is off: nodeProvisioningProfile.mode is Manual",
			"Two provisioners would buy nodes for the same pods.", Failed, true, managedMode),
		row(3, "cluster-autoscaler", "No agent pool is scaled by the cluster autoscaler",
			"Two autoscalers would buy nodes for the same pods, and remove nodes that the other counts on.", Failed, true, clusterAutoscaler),
		row(4, "windows-pools", "No agent pool runs Windows",
			"nap buys no Windows machines: pods that need Windows wait until a pool of your own has room.", Warning, false, windowsPools),
		row(5, "cluster-identity", "The cluster has a managed identity, not a service principal",
			"A service principal has a secret that machines would need and that ends.", Failed, false, clusterIdentity),
		row(6, "kubelet-identity", "The cluster has a kubelet identity",
			"Kubelets pull images with it; without one, pods on new nodes fail with ImagePullBackOff.", Failed, false, kubeletIdentity),
		row(7, "ip-families", "The cluster has IPv4 alone",
			"nap's machines get no IPv6 address, so pods of both families fail on them.", Failed, true, ipFamilies),
		row(8, "http-proxy", "The HTTP proxy has URLs that parse, and a CA that has not ended",
			"Machines are told to use it from their first second, and reach nothing where it is wrong.", Failed, false, httpProxy),
		row(9, "custom-ca", "Custom CA certificates parse and have not ended",
			"Machines trust what the cluster lists; one that does not parse ends their provisioning.", Failed, false, customCAs),
		row(10, "outbound-type", "The outbound type is one that AKS has",
			"Machines reach the internet in the way that it says.", Failed, false, outboundType),
		row(11, "load-balancer-sku", "The load balancer is of SKU standard",
			"Machines join the backend pools of a Standard Load Balancer; a basic one takes none of them.", Failed, false, loadBalancerSKU),
		row(12, "network-plugin", "The network plugin is azure or none, in mode overlay or with a node subnet",
			"In networks of kubenet the routes of nap's machines are kept by nothing.", Failed, false, networkPlugin),
		row(13, "network-policy", "The network policy is not Calico",
			"Calico is not supported on provisioned nodes: policies would not hold there.", Failed, true, networkPolicy),
		row(14, "pod-subnet", "Pods have no subnet of their own with dynamic allocation of addresses",
			"nap's machines reserve no addresses in it, so their pods get none.", Failed, true, podSubnet),
		row(15, "static-blocks", "Pods get no static blocks of addresses (podIPAllocationMode is not StaticBlock)",
			"nap's machines reserve no blocks, so their pods get no addresses.", Failed, true, staticBlocks),
		row(16, rowPower, "The cluster runs",
			"A stopped cluster has no API server: machines cannot join, and those that run are billed.", Failed, true, powerState),
		row(17, "upgrade-channel", "An upgrade channel is set for Kubernetes or for node images",
			"Nodes follow the control plane and its images; a cluster that is never upgraded leaves support, and its images go.",
			Warning, false, upgradeChannel),
	}
}

func update(f *managedcluster.Facts, flags string) string {
	return fmt.Sprintf("az aks update --resource-group %s --name %s %s", f.ResourceGroup, f.Name, flags)
}

// minimumMinor is the oldest minor version of Kubernetes 1 that works.
const minimumMinor = 26

func kubernetesVersion(f *managedcluster.Facts) answer {
	a := answer{read: "Kubernetes " + cmp.Or(f.State.KubernetesVersion, "of unknown version")}
	parts := strings.SplitN(strings.TrimPrefix(f.State.KubernetesVersion, "v"), ".", 3)
	if len(parts) < 2 {
		return a
	}
	if minor, err := strconv.Atoi(parts[1]); err == nil && parts[0] == "1" && minor < minimumMinor {
		a.fault = fmt.Sprintf("the control plane runs Kubernetes %s, nap needs 1.%d or later", f.State.KubernetesVersion, minimumMinor)
		a.fix = fmt.Sprintf("az aks upgrade --resource-group %s --name %s --kubernetes-version VERSION", f.ResourceGroup, f.Name)
	}
	return a
}

func managedMode(f *managedcluster.Facts) answer {
	a := answer{read: "nodeProvisioningProfile.mode " + cmp.Or(f.State.NodeProvisioning, "not set")}
	if strings.EqualFold(f.State.NodeProvisioning, "Auto") {
		a.fault, a.fix = "AKS's own node auto-provisioning is on", update(f, "--node-provisioning-mode Manual")
	}
	return a
}

// poolsThat are the names of agent pools of which something is true.
func poolsThat(f *managedcluster.Facts, is func(*managedcluster.AgentPool) bool) []string {
	var names []string
	for i := range f.Pools {
		if is(&f.Pools[i]) {
			names = append(names, f.Pools[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// poolsRead says which agent pools were looked at.
func poolsRead(f *managedcluster.Facts) string {
	names := poolsThat(f, func(*managedcluster.AgentPool) bool { return true })
	return fmt.Sprintf("%d agent pools: %s", len(names), strings.Join(names, ", "))
}

func clusterAutoscaler(f *managedcluster.Facts) answer {
	a := answer{read: poolsRead(f)}
	if names := poolsThat(f, func(p *managedcluster.AgentPool) bool { return p.AutoScaling }); len(names) > 0 {
		a.fault = "the cluster autoscaler scales agent pool " + strings.Join(names, ", ")
		var fixes []string
		for _, name := range names {
			fixes = append(fixes, fmt.Sprintf("az aks nodepool update --resource-group %s --cluster-name %s --name %s --disable-cluster-autoscaler",
				f.ResourceGroup, f.Name, name))
		}
		a.fix = strings.Join(fixes, "; ")
	}
	return a
}

func windowsPools(f *managedcluster.Facts) answer {
	a := answer{read: poolsRead(f)}
	if names := poolsThat(f, func(p *managedcluster.AgentPool) bool { return strings.EqualFold(p.OS, "Windows") }); len(names) > 0 {
		a.fault = "agent pool " + strings.Join(names, ", ") + " runs Windows"
		a.fix = fmt.Sprintf("az aks nodepool scale --resource-group %s --cluster-name %s --name %s --node-count COUNT",
			f.ResourceGroup, f.Name, names[0])
	}
	return a
}

func clusterIdentity(f *managedcluster.Facts) answer {
	a := answer{read: "identity " + cmp.Or(f.Owner.Type, "of unknown type")}
	if f.ServicePrincipal != "" {
		a.fault = "the cluster signs in with service principal " + f.ServicePrincipal
		a.fix = update(f, "--enable-managed-identity")
	}
	return a
}

func kubeletIdentity(f *managedcluster.Facts) answer {
	a := answer{read: "kubelet identity " + cmp.Or(f.Kubelet.ClientID, "none")}
	if f.Kubelet.ClientID == "" || f.Kubelet.ResourceID == "" {
		a.fault, a.fix = "the cluster has no kubelet identity", update(f, "--enable-managed-identity --assign-kubelet-identity IDENTITY_ID")
	}
	return a
}

func ipFamilies(f *managedcluster.Facts) answer {
	a := answer{read: "ipFamilies " + cmp.Or(strings.Join(f.Network.IPFamilies, ", "), "not set")}
	if slices.ContainsFunc(f.Network.IPFamilies, func(family string) bool { return strings.EqualFold(family, "IPv6") }) {
		a.fault = "the cluster has IPv6 addresses (ipFamilies " + strings.Join(f.Network.IPFamilies, ", ") + ")"
		a.fix = update(f, "--ip-families ipv4")
	}
	return a
}

func httpProxy(f *managedcluster.Facts) answer {
	p := &f.Proxy
	if p.HTTP == "" && p.HTTPS == "" {
		return answer{read: "no proxy"}
	}
	a := answer{read: "httpProxy " + shown(p.HTTP) + ", httpsProxy " + shown(p.HTTPS)}
	var faults []string
	for _, v := range [][2]string{{"httpProxy", p.HTTP}, {"httpsProxy", p.HTTPS}} {
		if u, err := url.Parse(v[1]); v[1] != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "") {
			faults = append(faults, v[0]+" "+shown(v[1])+" is no http or https URL")
		}
	}
	if p.TrustedCA != "" {
		if err := certificate(p.TrustedCA, time.Now()); err != nil {
			faults = append(faults, "trustedCa "+err.Error())
		}
	}
	if len(faults) > 0 {
		a.fault, a.fix = strings.Join(faults, "; "), update(f, "--http-proxy-config FILE")
	}
	return a
}

// shown is the address of a proxy without user and password.
func shown(address string) string { return cmp.Or(mask.Address(address), "none") }

// certificate says what is wrong with a certificate, base64 of its PEM text.
func certificate(text string, now time.Time) error {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return errors.New("is not base64")
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("holds no certificate in PEM")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return errors.New("holds a certificate that does not parse")
	case now.After(parsed.NotAfter):
		return fmt.Errorf("has ended on %s", parsed.NotAfter.UTC().Format(time.DateOnly))
	}
	return nil
}

func customCAs(f *managedcluster.Facts) answer {
	const most = 10
	a := answer{read: fmt.Sprintf("%d certificates", len(f.CustomCAs))}
	var faults []string
	for i, text := range f.CustomCAs {
		if err := certificate(text, time.Now()); err != nil {
			faults = append(faults, fmt.Sprintf("certificate %d %s", i+1, err))
		}
	}
	if len(f.CustomCAs) > most {
		faults = append(faults, fmt.Sprintf("%d certificates, AKS takes %d", len(f.CustomCAs), most))
	}
	if len(faults) > 0 {
		a.fault, a.fix = strings.Join(faults, "; "), update(f, "--custom-ca-trust-certificates FILE")
	}
	return a
}

// outboundTypes are those of AKS (Microsoft.ContainerService, OutboundType), with block
// of its previews.
func outboundTypes() []string {
	return []string{"loadBalancer", "managedNATGateway", "userAssignedNATGateway", "userDefinedRouting", "none", "block"}
}

func outboundType(f *managedcluster.Facts) answer {
	is := f.Network.OutboundType
	a := answer{read: "outboundType " + cmp.Or(is, "not set")}
	if is != "" && !slices.ContainsFunc(outboundTypes(), func(known string) bool { return strings.EqualFold(known, is) }) {
		a.fault = fmt.Sprintf("outbound type %s is none of %s", is, strings.Join(outboundTypes(), ", "))
		a.fix = update(f, "--outbound-type loadBalancer")
	}
	return a
}

func loadBalancerSKU(f *managedcluster.Facts) answer {
	a := answer{read: "loadBalancerSku " + cmp.Or(f.Network.LoadBalancerSKU, "not set")}
	if strings.EqualFold(f.Network.LoadBalancerSKU, "basic") {
		a.fault, a.fix = "the load balancer is of SKU basic", update(f, "--load-balancer-sku standard")
	}
	return a
}

func networkPlugin(f *managedcluster.Facts) answer {
	n := &f.Network
	plugin := cmp.Or(n.Plugin, "azure")
	a := answer{read: fmt.Sprintf("networkPlugin %s, networkPluginMode %s, networkDataplane %s",
		plugin, cmp.Or(n.Mode, "not set"), cmp.Or(n.Dataplane, "not set"))}
	switch {
	case plugin != "azure" && plugin != "none":
		a.fault = "the network plugin is " + plugin
	case n.Mode != "" && !strings.EqualFold(n.Mode, "overlay"):
		a.fault = "the network plugin mode is " + n.Mode
	}
	if a.fault != "" {
		a.fix = update(f, "--network-plugin azure --network-plugin-mode overlay --network-dataplane cilium")
	}
	return a
}

func networkPolicy(f *managedcluster.Facts) answer {
	a := answer{read: "networkPolicy " + cmp.Or(f.Network.Policy, "not set")}
	if strings.EqualFold(f.Network.Policy, "calico") {
		a.fault, a.fix = "the network policy is Calico", update(f, "--network-dataplane cilium --network-policy cilium")
	}
	return a
}

// moveToOverlay is the way out of a network that cannot be changed.
const moveToOverlay = "move to a cluster with Azure CNI Overlay: " +
	"az aks create --network-plugin azure --network-plugin-mode overlay --network-dataplane cilium"

func podSubnet(f *managedcluster.Facts) answer {
	a := answer{read: poolsRead(f)}
	names := poolsThat(f, func(p *managedcluster.AgentPool) bool {
		return p.PodSubnetID != "" && !strings.EqualFold(p.PodIPAllocation, "StaticBlock")
	})
	if len(names) > 0 {
		a.fault = "pods of agent pool " + strings.Join(names, ", ") + " get addresses from a subnet of their own"
		a.fix = moveToOverlay
	}
	return a
}

func staticBlocks(f *managedcluster.Facts) answer {
	a := answer{read: poolsRead(f)}
	names := poolsThat(f, func(p *managedcluster.AgentPool) bool { return strings.EqualFold(p.PodIPAllocation, "StaticBlock") })
	if len(names) > 0 {
		a.fault = "pods of agent pool " + strings.Join(names, ", ") + " get static blocks of addresses"
		a.fix = moveToOverlay
	}
	return a
}

func powerState(f *managedcluster.Facts) answer {
	a := answer{read: fmt.Sprintf("power state %s, provisioning state %s",
		cmp.Or(f.State.Power, "unknown"), cmp.Or(f.State.Provisioning, "unknown"))}
	stopped := strings.EqualFold(f.State.Power, "Stopped") && !strings.EqualFold(f.State.Provisioning, "Starting")
	if stopped || strings.EqualFold(f.State.Provisioning, "Stopping") {
		a.fault = "the cluster is stopped, or on its way there"
		a.fix = fmt.Sprintf("az aks start --resource-group %s --name %s", f.ResourceGroup, f.Name)
	}
	return a
}

func upgradeChannel(f *managedcluster.Facts) answer {
	channel, images := cmp.Or(f.State.UpgradeChannel, "none"), cmp.Or(f.State.NodeOSUpgradeChannel, "none")
	a := answer{read: fmt.Sprintf("upgradeChannel %s, nodeOSUpgradeChannel %s", channel, images)}
	none := func(text string) bool { return strings.EqualFold(text, "none") }
	if none(channel) && none(images) {
		a.fault, a.fix = "no upgrade channel is set", update(f, "--auto-upgrade-channel stable --node-os-upgrade-channel NodeImage")
	}
	return a
}
