package managedcluster

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

func parsed(t *testing.T, name string) Facts {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseBothFormsAlike(t *testing.T) {
	want := Facts{
		ID:           "/subscriptions/s/resourcegroups/rg/providers/Microsoft.ContainerService/managedClusters/c",
		Subscription: "s", ResourceGroup: "rg", Name: "c", TenantID: "t", Location: "eastus", NodeResourceGroup: "MC_rg_c_eastus",
		FQDN: "c-dns-1.hcp.eastus.azmk8s.io", PrivateFQDN: "c-dns-1.private.eastus.azmk8s.io",
		Network: Network{
			Plugin: "azure", Mode: "overlay", Dataplane: "cilium", Policy: "cilium", DNSServiceIP: "10.0.0.10",
			OutboundType: "loadBalancer", LoadBalancerSKU: "standard",
			IPFamilies: []string{"IPv4"}, PodCIDRs: []string{"192.168.0.0/16"}, ServiceCIDRs: []string{"10.0.0.0/16"},
		},
		Kubelet:       Identity{ResourceID: "/identities/c-agentpool", ClientID: "client", ObjectID: "object"},
		Owner:         ClusterIdentity{Type: "SystemAssigned", PrincipalIDs: []string{"p"}},
		AdminUsername: "azureuser", SSHPublicKeys: []string{"ssh-rsa AAAA"},
		Pools: []AgentPool{
			{Name: "user", Mode: "User", Type: "VirtualMachineScaleSets", SubnetID: "/subnets/user"},
			{Name: "system", Mode: "System", Type: "VirtualMachineScaleSets", SubnetID: "/subnets/system", PodSubnetID: "/subnets/pods"},
			{Name: "machines", Mode: "Machines"},
		},
		State: State{
			KubernetesVersion: "1.34.2", Provisioning: "Succeeded", Power: "Running", NodeProvisioning: "Manual", DefaultNodePools: "None",
			UpgradeChannel: "stable", NodeOSUpgradeChannel: "NodeImage",
		},
		Proxy:     Proxy{HTTP: "http://proxy:3128", HTTPS: "https://proxy:3129", NoProxy: []string{"10.0.0.0/16"}, TrustedCA: "UEVN"},
		CustomCAs: []string{"UEVN"}, OIDCIssuer: "https://eastus.oic.prod-aks.azure.com/t/u/",
		ArtifactSource: "Cache", ContainerRegistryID: "/registries/own",
	}
	for _, name := range []string{"arm.json", "az.json"} {
		if got := parsed(t, name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
	if got := want.SubnetID(); got != "/subnets/system" {
		t.Errorf("the system pool's subnet, not %s", got)
	}
}

func TestParseRefusesWhatIsNoCluster(t *testing.T) {
	for _, text := range []string{"", "[]", "{}", `{"id": "/subscriptions/s/resourceGroups/rg"}`, `{"id": 7}`} {
		if f, err := Parse([]byte(text)); !errors.Is(err, ErrNotCluster) {
			t.Errorf("%q was read as %+v, %v", text, f, err)
		}
	}
}

func TestParseFactsThatMachinesBootWith(t *testing.T) {
	const id = `{"id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/c", "properties": `
	for text, has := range map[string]func(*Facts) bool{
		`{"servicePrincipalProfile": {"clientId": "msi"}}`:              func(f *Facts) bool { return f.ServicePrincipal == "" },
		`{"servicePrincipalProfile": {"clientId": "sp"}}`:               func(f *Facts) bool { return f.ServicePrincipal == "sp" },
		`{"networkProfile": {"podLinkLocalAccess": "None"}}`:            func(f *Facts) bool { return f.Network.IMDSKeptFromPods },
		`{"networkProfile": {"podLinkLocalAccess": "IMDS"}}`:            func(f *Facts) bool { return !f.Network.IMDSKeptFromPods },
		`{"autoUpgradeProfile": {"nodeOSUpgradeChannel": "Unmanaged"}}`: func(f *Facts) bool { return f.UnattendedUpgrades && f.Lasting().UnattendedUpgrades },
		`{"httpProxyConfig": {"httpProxy": "http://p", "noProxy": ["a"], "effectiveNoProxy": ["a", "konnectivity"]}}`: func(f *Facts) bool {
			return len(f.Proxy.NoProxy) == 2
		},
		`{"httpProxyConfig": {"enabled": false, "httpProxy": "http://p"}}`: func(f *Facts) bool { return f.Proxy.HTTP == "" },
		`{"agentPoolProfiles": [{"mode": "User", "securityProfile": {"sshAccess": "Disabled"}}, {"mode": "System"},
			{"mode": "System", "securityProfile": {"sshAccess": "LocalUser"}}]}`: func(f *Facts) bool { return f.SSHAccess == "LocalUser" },
		`{"agentPoolProfiles": [{"mode": "System", "securityProfile": null}]}`: func(f *Facts) bool { return f.SSHAccess == "" },
	} {
		if f, err := Parse([]byte(id + text + "}")); err != nil || !has(&f) {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
}

func TestPauseWhileAutoOrStopped(t *testing.T) {
	for _, tt := range []struct{ provisioning, state, power, reason, command string }{
		{"Manual", "Succeeded", "Running", "", ""},
		{"", "Updating", "Running", "", ""},
		{"Auto", "Succeeded", "Running", ReasonAutoprovisioned, "az aks update --resource-group rg --name c --node-provisioning-mode Manual"},
		{"Manual", "Stopping", "Running", ReasonStopped, "az aks start --resource-group rg --name c"},
		{"Manual", "Succeeded", "Stopped", ReasonStopped, "az aks start"},
		{"Manual", "Starting", "Stopped", "", ""},
	} {
		f := parsed(t, "arm.json")
		f.State.NodeProvisioning, f.State.Provisioning, f.State.Power = tt.provisioning, tt.state, tt.power
		switch pause := f.Pause(); {
		case (pause == nil) != (tt.reason == ""):
			t.Errorf("%+v: %v", tt, pause)
		case pause != nil && (pause.Reason != tt.reason || !strings.Contains(pause.Error(), tt.command)):
			t.Errorf("%+v: %s: %s", tt, pause.Reason, pause)
		}
	}
}

func TestDifferenceNamesLastingFactsAlone(t *testing.T) {
	a, b := parsed(t, "arm.json"), parsed(t, "arm.json")
	b.State, b.Pools = State{Power: "Stopped", NodeProvisioning: "Auto", KubernetesVersion: "1.35.0"}, nil
	if !reflect.DeepEqual(a.Lasting(), b.Lasting()) || a.Difference(&b) != "" {
		t.Errorf("%s says nothing about new machines", a.Difference(&b))
	}
	a.Proxy.NoProxy, b.Proxy.NoProxy = []string{"a", "b"}, []string{"b", "a"}
	a.CustomCAs, b.CustomCAs = nil, []string{}
	a.Network.PodCIDRs, b.Network.PodCIDRs = []string{}, nil
	b.ID, b.ResourceGroup = strings.ToUpper(b.ID), strings.ToUpper(b.ResourceGroup)
	if !reflect.DeepEqual(a.Lasting(), b.Lasting()) || a.Difference(&b) != "" {
		t.Errorf("%s differ only in how Azure says them", a.Difference(&b))
	}
	b.Network.Dataplane, b.Kubelet.ClientID = "azure", "new"
	if got := a.Difference(&b); got != "Network, Kubelet" {
		t.Errorf("differ in %q", got)
	}
}
