package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
)

// odd is a machine that the command is asked about: the cluster of testdata with other
// properties, and a NodePool with requirements and an AKSNodeClass.
type odd struct {
	cluster      map[string]any // properties that are other; a key a.b is b of a
	requirements string         // of the NodePool, as YAML in one line
	class        string         // spec of the AKSNodeClass, likewise
	size         string         // --size
	// refused is in the message where there is no such machine; else holds says whether
	// the machine is right.
	refused string
	holds   func(c *bootstrap.Config) bool
}

// ask runs the command; the message is that of standard error.
func (o odd) ask(t *testing.T) (out, message string, code int) {
	t.Helper()
	text, err := os.ReadFile("testdata/machine/cluster.json")
	if err != nil {
		t.Fatal(err)
	}
	var cluster map[string]any
	if err := json.Unmarshal(text, &cluster); err != nil {
		t.Fatal(err)
	}
	cluster["httpProxyConfig"] = nil
	for key, value := range o.cluster {
		outer, inner, nested := strings.Cut(key, ".")
		if !nested {
			cluster[key] = value
			continue
		}
		of, _ := cluster[outer].(map[string]any)
		of = maps.Clone(of)
		if of == nil {
			of = map[string]any{}
		}
		of[inner] = value
		cluster[outer] = of
	}
	if text, err = json.Marshal(cluster); err != nil {
		t.Fatal(err)
	}
	class, requirements := o.class, o.requirements
	if class == "" {
		class = "{}"
	}
	if requirements == "" {
		requirements = "{key: kubernetes.io/arch, operator: In, values: [amd64]}"
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"cluster.json": string(text), "pool.yaml": `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: c}
      requirements: [` + requirements + `]
---
apiVersion: karpenter.azure.com/v1beta1
kind: AKSNodeClass
metadata: {name: c}
spec: ` + class + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"machine", "bootdata", "-f", filepath.Join(dir, "pool.yaml"), "--cluster", filepath.Join(dir, "cluster.json"), "-o", "json"}
	if o.size != "" {
		args = append(args, "--size", o.size)
	}
	return nap.Run(t, args...)
}

func (o odd) check(t *testing.T) {
	t.Helper()
	out, message, code := o.ask(t)
	switch {
	case o.refused != "":
		if code != 1 || out != "" || !strings.Contains(message, o.refused) {
			t.Errorf("exit code %d, %q, want %q", code, message, o.refused)
		}
	case code != 0:
		t.Error(message)
	case !o.holds(decoded(t, out)):
		t.Errorf("another machine:\n%s", out)
	}
}

func TestMachineBootdataOfOddClusters(t *testing.T) {
	const registry = "/subscriptions/s/resourceGroups/r/providers/Microsoft.ContainerRegistry/registries/Prod"
	for name, o := range map[string]odd{
		"US Government": {cluster: map[string]any{"location": "usgovvirginia", "fqdn": "prod-1a2b3c4d.hcp.usgovvirginia.cx.aks.containerservice.azure.us",
			"networkProfile.outboundType": "none", "bootstrapProfile": map[string]any{"artifactSource": "Cache", "containerRegistryId": registry}},
			holds: func(c *bootstrap.Config) bool {
				return c.Cluster.Location == "usgovvirginia" && c.BootstrapContainerRegistry == "prod.azurecr.us/aks-managed-repository" && c.OutboundCommand == ""
			}},
		"registry without a name": {cluster: map[string]any{"bootstrapProfile": map[string]any{"artifactSource": "Cache"}}, refused: "NAP_BOOTSTRAP_REGISTRY: must be set"},
		"dual stack":              {cluster: map[string]any{"networkProfile.ipFamilies": []string{"IPv4", "IPv6"}}, holds: func(c *bootstrap.Config) bool { return c.IPv6DualStack }},
		"bring your own network": {cluster: map[string]any{"networkProfile.networkPlugin": "none", "networkProfile.networkPluginMode": nil,
			"networkProfile.networkDataplane": nil, "networkProfile.networkPolicy": "none"},
			holds: func(c *bootstrap.Config) bool {
				return c.Network.Plugin == "NETWORK_PLUGIN_NONE" && c.Kubelet.NodeLabels["kubernetes.azure.com/azure-cni-overlay"] == ""
			}},
		"node subnet": {cluster: map[string]any{"networkProfile.networkPluginMode": "none", "networkProfile.networkDataplane": nil, "networkProfile.networkPolicy": "azure"},
			holds: func(c *bootstrap.Config) bool {
				return c.Network.Plugin == "NETWORK_PLUGIN_AZURE" && c.Kubelet.Flags["--max-pods"] == "30"
			}},
		"kubenet":           {cluster: map[string]any{"networkProfile.networkPlugin": "kubenet"}, refused: "the cluster's network plugin is kubenet"},
		"service principal": {cluster: map[string]any{"servicePrincipalProfile": map[string]any{"clientId": "sp"}, "identityProfile": nil}, refused: "signs in with service principal sp"},
		"private": {cluster: map[string]any{"apiServerAccessProfile": map[string]any{"enablePrivateCluster": true}, "privateFqdn": "p-1.privatelink.westeurope.azmk8s.io"},
			holds: func(c *bootstrap.Config) bool { return c.APIServer.Name == "p-1.privatelink.westeurope.azmk8s.io" }},
		"missing fields": {cluster: map[string]any{"networkProfile": nil, "identityProfile": nil, "linuxProfile": nil, "agentPoolProfiles": nil, "fqdn": nil,
			"location": nil, "nodeResourceGroup": nil, "currentKubernetesVersion": nil, "kubernetesVersion": nil, "identity": nil},
			holds: func(c *bootstrap.Config) bool {
				return c.Auth.SubscriptionID == "22222222-2222-2222-2222-222222222222" && c.Cluster.ResourceGroup == "MC_placeholder"
			}},
		"minor version alone": {cluster: map[string]any{"currentKubernetesVersion": nil}, refused: `kubernetes_version: "1.31" is not of the form`},
		"old version":         {cluster: map[string]any{"currentKubernetesVersion": "1.26.3"}, refused: "kubernetes_version: 1.26.3 is older than"},
		"no cluster's id":     {cluster: map[string]any{"id": "prod"}, refused: `its id "prod" is not that of a Microsoft.ContainerService/managedClusters`},
		"proxy of no form":    {cluster: map[string]any{"httpProxyConfig": map[string]any{"httpProxy": "proxy:3128"}}, refused: `http_proxy_config.http_proxy: "proxy:3128"`},
		"no certificate":      {cluster: map[string]any{"securityProfile.customCaTrustCertificates": []string{"AAAA"}}, refused: "custom_ca_certs[0]: is not PEM"},
		"group with quotes":   {cluster: map[string]any{"nodeResourceGroup": `MC"$(reboot)`}, refused: "cluster_config.resource_group: "},
		"SSH that is disabled": {cluster: map[string]any{"agentPoolProfiles": []any{map[string]any{"mode": "System", "securityProfile": map[string]any{"sshAccess": "Disabled"}}}},
			holds: func(c *bootstrap.Config) bool { return c.EnableSSH != nil && !*c.EnableSSH }},
	} {
		t.Run(name, func(t *testing.T) { o.check(t) })
	}
	out, message, code := odd{cluster: map[string]any{"nodeProvisioningProfile": map[string]any{"mode": "Auto"}}}.ask(t)
	if code != 0 || out == "" || !strings.Contains(message, "note: AKS's own node auto-provisioning is on") {
		t.Errorf("a cluster that AKS buys nodes for: exit code %d, %q", code, message)
	}
}

// zones are overrides of DNS zones, each with its destination.
func zones(pairs ...string) string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, `{zone: "`+pairs[i]+`", forwardDestination: `+pairs[i+1]+`, queryLogging: Error, protocol: PreferUDP, forwardPolicy: Sequential, `+
			`maxConcurrent: 1000, cacheDuration: 1h, serveStaleDuration: 1h, serveStale: Immediate}`)
	}
	return strings.Join(out, ", ")
}

func TestMachineBootdataOfOddMachines(t *testing.T) {
	const (
		arm, spot = "{key: kubernetes.io/arch, operator: In, values: [arm64]}", "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}"
		nvidia    = "{key: karpenter.azure.com/sku-gpu-manufacturer, operator: In, values: [nvidia]}"
		ephemeral = `{key: karpenter.azure.com/sku-storage-ephemeralos-maxsize, operator: Gt, values: ["100"]}`
	)
	for name, o := range map[string]odd{
		"arm64": {requirements: arm, holds: func(c *bootstrap.Config) bool {
			return strings.Contains(c.KubeBinary.KubeBinaryURL, "-arm64") && c.Kubelet.NodeLabels["kubernetes.io/arch"] == "arm64"
		}},
		"arm64 with GPUs": {requirements: arm + "," + nvidia, refused: "none of the"},
		"NVIDIA":          {requirements: nvidia, holds: func(c *bootstrap.Config) bool { return c.GPU.EnableNVIDIA && c.GPU.ConfigGPUDriver }},
		"NVIDIA without driver": {requirements: nvidia, class: "{gpu: {mode: None}}",
			holds: func(c *bootstrap.Config) bool { return !c.GPU.EnableNVIDIA && !c.GPU.ConfigGPUDriver }},
		"spot with ephemeral disk": {requirements: spot + "," + ephemeral, class: "{osDiskSizeGB: 100}", holds: func(c *bootstrap.Config) bool {
			return c.Kubelet.NodeLabels["karpenter.sh/capacity-type"] == "spot" && c.Kubelet.NodeLabels["karpenter.azure.com/sku-storage-ephemeralos-maxsize"] != ""
		}},
		"FIPS on arm64":               {requirements: arm, class: "{fipsMode: FIPS, imageFamily: AzureLinux}", refused: "; 96 sizes are left out: no image of family AzureLinux runs on arm64"},
		"FIPS of a family without it": {class: "{fipsMode: FIPS, imageFamily: Ubuntu2404}", refused: "AKSNodeClass c: spec: Invalid value: FIPS is not yet supported for Ubuntu2404"},
		"FIPS": {class: "{fipsMode: FIPS, imageFamily: AzureLinux}", holds: func(c *bootstrap.Config) bool {
			return c.Kubelet.NodeLabels["kubernetes.azure.com/fips_enabled"] == "true"
		}},
		"another family":    {class: "{imageFamily: Debian}", refused: `"Debian"`},
		"unknown field":     {class: "{imageFamly: Ubuntu}", refused: "AKSNodeClass c: spec.imageFamly: there is no such field"},
		"ports in disorder": {class: `{linuxOSConfig: {sysctls: {netIPv4IPLocalPortRange: "60999 32768"}}}`, refused: "the first port of netIPv4IPLocalPortRange must be at most the last"},
		"swap":              {class: "{linuxOSConfig: {swapFileSize: 1Gi}}", refused: "failSwapOn"},
		"image that is old": {class: `{imageVersion: "202401.01.0"}`, refused: `AKSNodeClass c: spec.imageVersion: got "202401.01.0", must be at least ` + bootstrap.OldestImage},
		"LocalDNS without a zone": {class: "{localDNS: {mode: Required, vnetDNSOverrides: [], kubeDNSOverrides: [" + zones("contoso.com", "VnetDNS") + "]}}",
			refused: "must contain required zones"},
		"unknown label":      {requirements: "{key: kubernetes.azure.com/tier, operator: Exists}", refused: "kubernetes.azure.com/tier"},
		"size in small":      {size: "standard_d4s_v5", holds: func(c *bootstrap.Config) bool { return c.VMSize == "Standard_D4s_v5" }},
		"AMD without driver": {size: "Standard_ND96isr_MI300X_v5", class: "{gpu: {mode: None}}", refused: "MI300X"},
		"LocalDNS of its own": {
			class: "{localDNS: {mode: Required, vnetDNSOverrides: [" + zones(".", "VnetDNS", "cluster.local", "ClusterCoreDNS") + "], kubeDNSOverrides: [" +
				zones(".", "ClusterCoreDNS", "cluster.local", "ClusterCoreDNS", "contoso.com", "VnetDNS") + "]}}",
			holds: func(c *bootstrap.Config) bool {
				return c.LocalDNS.KubeDNS["contoso.com"].ForwardDestination == "VnetDNS" && c.Kubelet.Flags["--cluster-dns"] == "169.254.10.11"
			},
		},
	} {
		t.Run(name, func(t *testing.T) { o.check(t) })
	}
}
