package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

const (
	kubeletID = "/subscriptions/s/resourceGroups/MC_c/providers/Microsoft.ManagedIdentity/userAssignedIdentities/c-agentpool"
	ownSubnet = "/subscriptions/s/resourceGroups/MC_c/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
	byoSubnet = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/corp/subnets/nodes"
)

// told is what an overlay cluster with Cilium in AKS's own network tells.
func told() managedcluster.Facts {
	return managedcluster.Facts{
		ID:            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/c",
		ResourceGroup: "rg", Name: "c", TenantID: "tenant", Location: "eastus", NodeResourceGroup: "MC_c",
		FQDN: "c-dns-1.hcp.eastus.azmk8s.io",
		Network: managedcluster.Network{
			Plugin: "azure", Mode: "overlay", Dataplane: "cilium", Policy: "cilium", DNSServiceIP: "10.0.0.10",
		},
		Kubelet:       managedcluster.Identity{ResourceID: kubeletID, ClientID: kubeletClient},
		AdminUsername: "azureuser", SSHPublicKeys: []string{"ssh-rsa AAAA"},
		Pools: []managedcluster.AgentPool{{Name: "system", Mode: "System"}},
	}
}

// few are the variables that no cluster can tell.
func few(more ...string) map[string]string {
	vars := map[string]string{
		"CLUSTER_NAME": "c", "AZURE_SUBSCRIPTION_ID": "s", "ARM_RESOURCE_GROUP": "rg",
	}
	for i := 0; i < len(more); i += 2 {
		vars[more[i]] = more[i+1]
	}
	return vars
}

func learn(t *testing.T, vars map[string]string, change func(*managedcluster.Facts)) (Config, error) {
	t.Helper()
	c, err := read(vars, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := told()
	if change != nil {
		change(&f)
	}
	return c.Learn(&f, ownSubnet)
}

func TestLearnFillsWhatIsNotSet(t *testing.T) {
	c, err := learn(t, few(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]string{
		"endpoint":       {c.ClusterEndpoint, "https://c-dns-1.hcp.eastus.azmk8s.io:443"},
		"location":       {c.Location, "eastus"},
		"group":          {c.NodeResourceGroup, "MC_c"},
		"subnet":         {c.VNETSubnetID, ownSubnet},
		"plugin":         {c.NetworkPlugin, "azure"},
		"mode":           {c.NetworkPluginMode, "overlay"},
		"dataplane":      {c.NetworkDataplane, "cilium"},
		"policy":         {c.NetworkPolicy, "cilium"},
		"DNS":            {c.DNSServiceIP, "10.0.0.10"},
		"client id":      {c.KubeletIdentityClientID, kubeletClient},
		"identities":     {strings.Join(c.NodeIdentities, ","), kubeletID},
		"key":            {c.SSHPublicKey, "ssh-rsa AAAA"},
		"user":           {c.AdminUsername, "azureuser"},
		"tenant":         {c.Cloud.TenantID, "tenant"},
		"what was asked": {c.Facts.Name, "c"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", name, pair[0], pair[1])
		}
	}
}

func TestLearnPrivateClusterByPrivateName(t *testing.T) {
	c, err := learn(t, few(), func(f *managedcluster.Facts) {
		f.Private, f.PrivateFQDN = true, "c-dns-1.private.eastus.azmk8s.io"
	})
	if want := "https://c-dns-1.private.eastus.azmk8s.io:443"; err != nil || c.ClusterEndpoint != want {
		t.Errorf("endpoint %q (%v), want %s", c.ClusterEndpoint, err, want)
	}
}

func TestLearnVariablesWin(t *testing.T) {
	extra := strings.Replace(kubeletID, "c-agentpool", "extra", 1)
	c, err := learn(t, few("CLUSTER_ENDPOINT", "https://C-dns-1.hcp.eastus.azmk8s.io", "SSH_PUBLIC_KEY", "ssh-rsa BBBB", "LINUX_ADMIN_USERNAME", "me",
		"DNS_SERVICE_IP", "169.254.10.11", "NODE_IDENTITIES", extra, "AZURE_TENANT_ID", "other",
		"VNET_SUBNET_ID", strings.Replace(ownSubnet, "aks-subnet", "more", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.ClusterEndpoint != "https://C-dns-1.hcp.eastus.azmk8s.io" || c.SSHPublicKey != "ssh-rsa BBBB" || c.AdminUsername != "me" ||
		c.DNSServiceIP != "169.254.10.11" || c.Cloud.TenantID != "other" || !strings.HasSuffix(c.VNETSubnetID, "/more") {
		t.Errorf("learned %+v", c)
	}
	if !slices.Equal(c.NodeIdentities, []string{extra, kubeletID}) {
		t.Errorf("identities %v: the kubelets' own must be among them", c.NodeIdentities)
	}
}

func TestLearnRefusesContradictionByName(t *testing.T) {
	subnetMode := func(f *managedcluster.Facts) { f.Network.Mode, f.Network.Dataplane, f.Network.Policy = "", "azure", "" }
	for _, tt := range []struct {
		name, value, want string
		change            func(*managedcluster.Facts)
	}{
		{"NETWORK_PLUGIN_MODE", "overlay", "NETWORK_PLUGIN_MODE is overlay, the cluster says node subnet", subnetMode},
		{"NETWORK_PLUGIN_MODE", "", "NETWORK_PLUGIN_MODE is node subnet, the cluster says overlay", nil},
		{"NETWORK_PLUGIN", "none", "NETWORK_PLUGIN is none, the cluster says azure", nil},
		{"NETWORK_PLUGIN", "", "NETWORK_PLUGIN is none, the cluster says azure", nil},
		{"NETWORK_DATAPLANE", "", "NETWORK_DATAPLANE is no Cilium, the cluster says cilium", nil},
		{"NETWORK_DATAPLANE", "cilium", "NETWORK_DATAPLANE is cilium, the cluster says no Cilium", subnetMode},
		{"NETWORK_POLICY", "", "NETWORK_POLICY is none, the cluster says cilium", nil},
		{"CLUSTER_ENDPOINT", "https://d-dns-2.hcp.eastus.azmk8s.io:443",
			"CLUSTER_ENDPOINT is d-dns-2.hcp.eastus.azmk8s.io, the cluster says c-dns-1.hcp.eastus.azmk8s.io", nil},
		{"LOCATION", "westus", "LOCATION is westus, the cluster says eastus", nil},
		{"AZURE_NODE_RESOURCE_GROUP", "MC_other", "AZURE_NODE_RESOURCE_GROUP is MC_other, the cluster says MC_c", nil},
		{"KUBELET_IDENTITY_CLIENT_ID", "11111111-1111-1111-1111-111111111111",
			"KUBELET_IDENTITY_CLIENT_ID is 11111111-1111-1111-1111-111111111111, the cluster says " + kubeletClient, nil},
		{"VNET_SUBNET_ID", byoSubnet, "VNET_SUBNET_ID is in virtual network corp of resource group net, the cluster says", nil},
		{"VNET_SUBNET_ID", strings.Replace(byoSubnet, "corp", "lab", 1), "the cluster says its machines are in corp",
			func(f *managedcluster.Facts) { f.Pools[0].SubnetID = byoSubnet }},
		{"NAP_RESTRICT_IMDS", "false", "NAP_RESTRICT_IMDS is false, the cluster says pods may not reach",
			func(f *managedcluster.Facts) { f.Network.IMDSKeptFromPods = true }},
		{"NAP_BOOTSTRAP_REGISTRY", "prod.azurecr.io/copies", "NAP_BOOTSTRAP_REGISTRY is prod.azurecr.io/copies, the cluster says its machines " +
			"bootstrap from Microsoft's registry (artifactSource Direct is not Cache)", func(f *managedcluster.Facts) { f.ArtifactSource = "Direct" }},
		{"NAP_BOOTSTRAP_REGISTRY", "test.azurecr.io/copies", "the cluster says its registry is prod", isolated},
	} {
		_, err := learn(t, few(tt.name, tt.value), tt.change)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "remove the variable") {
			t.Errorf("%s=%q: %v, want %q", tt.name, tt.value, err, tt.want)
		}
	}
}

func TestLearnSetButEmptyMeansEmpty(t *testing.T) {
	for _, asked := range []bool{true, false} {
		vars := good()
		for _, name := range []string{"NETWORK_PLUGIN_MODE", "NETWORK_DATAPLANE", "NETWORK_POLICY"} {
			vars[name] = ""
		}
		if asked {
			delete(vars, "CLUSTER_ENDPOINT")
		}
		c, err := read(vars, nil)
		if err != nil {
			t.Fatal(err)
		}
		facts := told()
		facts.Network.Mode, facts.Network.Dataplane, facts.Network.Policy = "", "azure", "none"
		if asked {
			c, err = c.Learn(&facts, ownSubnet)
		} else {
			c, err = c.Learn(nil, "")
		}
		if err != nil || !c.PodsTakeNodeSubnet() || c.DefaultMaxPods() != 30 || c.NetworkDataplane != "" {
			t.Errorf("asked %v: mode %q, dataplane %q, %d pods, %v", asked, c.NetworkPluginMode, c.NetworkDataplane, c.DefaultMaxPods(), err)
		}
	}
	vars := good()
	vars["NETWORK_PLUGIN"] = ""
	if c, err := load(vars, nil); err != nil || c.NetworkPlugin != PluginNone || c.NetworkPluginMode != "" {
		t.Errorf("without AKS's plugin: %q, mode %q, %v", c.NetworkPlugin, c.NetworkPluginMode, err)
	}
}

func TestLearnMeaningfulOnlyWhereClusterSaysNothing(t *testing.T) {
	for what, change := range map[string]func(*managedcluster.Facts){
		"SSH_PUBLIC_KEY: must be set, because the cluster does not say": func(f *managedcluster.Facts) { f.SSHPublicKeys = nil },
		"KUBELET_IDENTITY_CLIENT_ID: must be set":                       func(f *managedcluster.Facts) { f.Kubelet = managedcluster.Identity{} },
		"NODE_IDENTITIES: must be set":                                  func(f *managedcluster.Facts) { f.Kubelet.ResourceID = "" },
		"CLUSTER_ENDPOINT: must be set":                                 func(f *managedcluster.Facts) { f.FQDN = "" },
		"NAP_BOOTSTRAP_REGISTRY: must be set, because the cluster bootstraps from a registry": func(f *managedcluster.Facts) {
			f.ArtifactSource = "Cache"
		},
		"KUBELET_IDENTITY_CLIENT_ID: must be set, with NODE_IDENTITIES, because the cluster signs in with service principal sp": func(f *managedcluster.Facts) {
			f.ServicePrincipal, f.Kubelet = "sp", managedcluster.Identity{}
		},
		"the cluster's network plugin is kubenet": func(f *managedcluster.Facts) { f.Network.Plugin = "kubenet" },
	} {
		if _, err := learn(t, few(), change); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

func TestLearnAKSMachinesNeedNoBootData(t *testing.T) {
	for _, mode := range []string{ModeAKSMachines, ModeAKSMachinesBatched, ""} {
		c, err := learn(t, few("PROVISION_MODE", mode), func(f *managedcluster.Facts) {
			f.SSHPublicKeys, f.Kubelet, f.FQDN, f.ArtifactSource = nil, managedcluster.Identity{}, "", "Cache"
			f.Pools = append(f.Pools, managedcluster.AgentPool{Name: "machines", Mode: "Machines"})
		})
		if err != nil || c.SSHPublicKey != "" || !c.BootstrapToken.IsZero() || !c.StartsAKSMachines() {
			t.Errorf("mode %q, machines that AKS boots: %+v, %v", mode, c, err)
		}
	}
}
