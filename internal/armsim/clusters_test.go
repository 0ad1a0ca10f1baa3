package armsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// properties are a body of nothing else.
func properties(of map[string]any) map[string]any { return map[string]any{"properties": of} }

// provisioning is the body of a managed cluster with a mode of node provisioning.
func provisioning(mode string) map[string]any {
	return properties(map[string]any{"nodeProvisioningProfile": map[string]any{"mode": mode}})
}

// mode is that of the managed cluster.
func (u *subscriber) mode() string {
	_, _, cluster := u.raw("GET", u.Server.ClusterID(), previewVersion, nil, nil)
	profile, _ := cluster["properties"].(map[string]any)["nodeProvisioningProfile"].(map[string]any)
	return fmt.Sprint(profile["mode"])
}

// AKS switches its node auto-provisioning off only when it has no node and no NodePool may
// buy, whether a template, the command line or a program asks.
func TestModeManualIsRefusedWhileNodesOrNodePoolsRemain(t *testing.T) {
	synctest.Test(t, modeManualIsRefused)
}

func modeManualIsRefused(t *testing.T) {
	var open []string
	u := subscribe(t, func(c *armsim.Config) { c.Cluster.OpenNodePools = func() []string { return open } })
	put := func(mode string) (int, map[string]any) {
		status, _, body := u.raw("PUT", u.Server.ClusterID(), "2025-05-01", nil, provisioning(mode))
		return status, body
	}
	if status, body := put("Auto"); status != http.StatusOK || u.mode() != "Auto" {
		t.Fatalf("Auto: %d %v", status, body)
	}
	tagged := aksMachine("Standard_D4s_v5", "1")
	tagged["properties"].(map[string]any)["tags"] = map[string]any{"karpenter.sh_nodepool": "default"}
	if status, _, body := u.raw("PUT", u.machinePath("bought"), previewVersion, nil, tagged); status != http.StatusCreated {
		t.Fatalf("a machine: %d %v", status, body)
	}
	open = []string{"default", "system-surge"}
	refused := func(want ...string) {
		t.Helper()
		status, body := put("Manual")
		text := fmt.Sprint(body["message"])
		for _, w := range want {
			if status != http.StatusBadRequest || body["code"] != "OperationNotAllowed" || !strings.Contains(text, w) {
				t.Errorf("%d %v, want %q", status, body, w)
			}
		}
		if u.mode() != "Auto" {
			t.Errorf("the mode is %s", u.mode())
		}
	}
	refused("karpenter.sh/nodepool: aks-machines-bought-")
	if status, _, body := u.raw("POST", u.Server.ClusterID()+"/agentPools/machines/deleteMachines", previewVersion, nil,
		map[string]any{"machineNames": []string{"bought"}}); status != http.StatusAccepted {
		t.Fatalf("%d %v", status, body)
	}
	synctest.Wait()
	refused(".spec.limits.cpu set to 0: default, system-surge")
	open = nil
	if status, body := put("Manual"); status != http.StatusOK || u.mode() != "Manual" {
		t.Errorf("Manual: %d %v", status, body)
	}
	open = []string{"default"}
	if status, body := put("Manual"); status != http.StatusOK {
		t.Errorf("Manual where it is Manual: %d %v", status, body)
	}
}

func TestModeAutoIsRefusedBesideTheClusterAutoscaler(t *testing.T) {
	u := subscribe(t)
	body := provisioning("Auto")
	body["properties"].(map[string]any)["agentPoolProfiles"] = []any{map[string]any{"name": "system", "mode": "System", "enableAutoScaling": true}}
	status, _, answer := u.raw("PUT", u.Server.ClusterID(), "2025-05-01", nil, body)
	const want = ".properties.nodeProvisioningProfile.mode cannot be Auto unless all AgentPools have property .properties.enableAutoScaling set to one of [false]"
	if status != http.StatusBadRequest || answer["code"] != "OperationNotAllowed" || answer["message"] != want {
		t.Errorf("%d %v", status, answer)
	}
	if status, _, answer := u.raw("PUT", u.Server.ClusterID(), "2025-05-01", nil, provisioning("On")); status != http.StatusBadRequest {
		t.Errorf("an unknown mode: %d %v", status, answer)
	}
	if u.mode() != "Manual" {
		t.Errorf("the mode is %s", u.mode())
	}
}

// A change leaves alone what its body does not name.
func TestChangeOfClusterKeepsTheRest(t *testing.T) {
	u := subscribe(t)
	_, _, before := u.raw("GET", u.Server.ClusterID(), "2025-05-01", nil, nil)
	body := provisioning("Manual")
	body["properties"].(map[string]any)["agentPoolProfiles"] = []any{map[string]any{"name": "system", "mode": "System", "enableAutoScaling": true}}
	body["tags"] = map[string]string{"team": "web"}
	status, _, after := u.raw("PUT", u.Server.ClusterID(), "2025-05-01", nil, body)
	if status != http.StatusOK || fmt.Sprint(after["tags"]) != "map[team:web]" || fmt.Sprint(after["identity"]) != fmt.Sprint(before["identity"]) {
		t.Fatalf("%d %v", status, after)
	}
	is, was := after["properties"].(map[string]any), before["properties"].(map[string]any)
	for _, key := range []string{"fqdn", "networkProfile", "nodeResourceGroup", "identityProfile", "currentKubernetesVersion"} {
		if fmt.Sprint(is[key]) != fmt.Sprint(was[key]) {
			t.Errorf("%s is %v, was %v", key, is[key], was[key])
		}
	}
	if _, _, pool := u.raw("GET", u.Server.ClusterID()+"/agentPools/system", "2025-05-01", nil, nil); pool["properties"].(map[string]any)["enableAutoScaling"] != true {
		t.Errorf("the pool is %v", pool)
	}
}

// ownNetwork is a subscription without a cluster, in which there are a network and an
// identity for one.
type ownNetwork struct {
	*subscriber
	group, vnet, identity string
}

func inOwnNetwork(t *testing.T) *ownNetwork {
	t.Helper()
	u := &ownNetwork{subscriber: subscribe(t, func(c *armsim.Config) { c.Cluster.Absent = true })}
	u.group = "/subscriptions/" + u.SubscriptionID + "/resourceGroups/" + u.ResourceGroup
	u.vnet, u.identity = u.group+"/providers/Microsoft.Network/virtualNetworks/own", u.group+"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/own"
	u.make(u.vnet, "2025-05-01", map[string]any{"location": u.Region, "properties": map[string]any{
		"addressSpace": map[string]any{"addressPrefixes": []string{"172.19.0.0/16"}}}})
	u.subnet("nodes", "172.19.1.0/24", "")
	u.make(u.identity, "2024-11-30", map[string]any{"location": u.Region})
	return u
}

func (u *ownNetwork) make(path, version string, body map[string]any) map[string]any {
	u.t.Helper()
	status, _, answer := u.raw("PUT", path, version, nil, body)
	if status >= http.StatusBadRequest {
		u.t.Fatalf("PUT %s: %d %v", path, status, answer)
	}
	return answer
}

func (u *ownNetwork) subnet(name, prefix, delegation string) {
	u.t.Helper()
	p := map[string]any{"addressPrefix": prefix}
	if delegation != "" {
		p["delegations"] = []any{map[string]any{"name": "d", "properties": map[string]any{"serviceName": delegation}}}
	}
	u.make(u.vnet+"/subnets/"+name, "2025-05-01", properties(p))
}

// permit gives the identity the role Network Contributor on the network.
func (u *ownNetwork) permit() {
	u.t.Helper()
	_, _, identity := u.raw("GET", u.identity, "2024-11-30", nil, nil)
	u.make(u.vnet+"/providers/Microsoft.Authorization/roleAssignments/7a5b0000-0000-4000-8000-000000000001", "2022-04-01", properties(map[string]any{
		"principalId":      identity["properties"].(map[string]any)["principalId"],
		"roleDefinitionId": "/providers/Microsoft.Authorization/roleDefinitions/4d97b98b-1d4f-4910-a051-f42900715ad8"}))
}

// cluster is the body of a cluster whose nodes and API server are in subnets.
func (u *ownNetwork) cluster(nodes, apiServer string) map[string]any {
	return map[string]any{"location": u.Region,
		"identity": map[string]any{"type": "UserAssigned", "userAssignedIdentities": map[string]any{u.identity: map[string]any{}}},
		"properties": map[string]any{
			"dnsPrefix":              "own",
			"agentPoolProfiles":      []any{map[string]any{"name": "agentpool", "mode": "System", "count": 3, "vmSize": "Standard_D4s_v5", "vnetSubnetID": u.vnet + "/subnets/" + nodes}},
			"apiServerAccessProfile": map[string]any{"enableVnetIntegration": true, "subnetId": u.vnet + "/subnets/" + apiServer},
			"networkProfile":         map[string]any{"networkPlugin": "azure", "networkPluginMode": "overlay", "networkDataplane": "cilium"},
			"oidcIssuerProfile":      map[string]any{"enabled": true},
		}}
}

func TestClusterIsMadeInOwnNetwork(t *testing.T) {
	u := inOwnNetwork(t)
	u.subnet("apiserver", "172.19.0.0/28", "Microsoft.ContainerService/managedClusters")
	if status, _, _ := u.raw("GET", u.Server.ClusterID(), "2025-05-01", nil, nil); status != http.StatusNotFound {
		t.Fatalf("there is a cluster: %d", status)
	}
	put := func(nodes, apiServer string) (int, map[string]any) {
		status, _, answer := u.raw("PUT", u.Server.ClusterID(), "2025-05-01", nil, u.cluster(nodes, apiServer))
		return status, answer
	}
	if status, answer := put("nodes", "apiserver"); status != http.StatusForbidden || answer["code"] != "LinkedAuthorizationFailed" {
		t.Errorf("without the role: %d %v", status, answer)
	}
	u.permit()
	u.subnet("plain", "172.19.2.0/28", "")
	u.subnet("small", "172.19.3.0/29", "Microsoft.ContainerService/managedClusters")
	for want, subnets := range map[string][2]string{
		"must be delegated to": {"nodes", "plain"}, "needs a /28 or larger": {"nodes", "small"}, "was not found": {"nodes", "none"},
		"needs one of its own": {"apiserver", "apiserver"},
	} {
		if status, answer := put(subnets[0], subnets[1]); status < http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer["message"]), want) {
			t.Errorf("%d %v, want %q", status, answer, want)
		}
	}
	status, answer := put("nodes", "apiserver")
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, answer)
	}
	if got := u.poolsOfCluster(); got != "agentpool System Succeeded" {
		t.Errorf("pools %s", got)
	}
	_, _, made := u.raw("GET", u.Server.ClusterID(), "2025-05-01", nil, nil)
	p := made["properties"].(map[string]any)
	issuer := fmt.Sprint(p["oidcIssuerProfile"].(map[string]any)["issuerURL"])
	network := p["networkProfile"].(map[string]any)
	if !strings.HasPrefix(issuer, "https://eastus.oic.prod-aks.azure.com/") || network["podCidr"] != "192.168.0.0/16" || network["networkDataplane"] != "cilium" ||
		p["nodeResourceGroup"] != u.NodeResourceGroup || u.mode() != "Manual" {
		t.Errorf("the cluster is %v", p)
	}
}
