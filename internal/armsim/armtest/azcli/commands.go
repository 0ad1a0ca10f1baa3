package azcli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest/template"
)

// Versions of the API that the command line uses.
const (
	networkVersion  = "2025-05-01"
	identityVersion = "2024-11-30"
	clusterVersion  = "2026-04-01"
	roleVersion     = "2022-04-01"
)

// options are the flags of a command; each use of one is taken out, so that those which
// are left are known to be none of the command's.
type options struct {
	shell *Shell
	name  string // of the command
	flags map[string][]string
}

func (o *options) list(flag string) []string {
	values := o.flags[flag]
	delete(o.flags, flag)
	return values
}

// one is the value of a flag, empty where it is not there.
func (o *options) one(flag string) string {
	if values := o.list(flag); len(values) == 1 {
		return values[0]
	}
	return ""
}

// need is the value of a flag that must be there.
func (o *options) need(flag string) string {
	o.shell.Helper()
	value := o.one(flag)
	if value == "" {
		o.shell.Fatalf("az %s: --%s is missing", o.name, flag)
	}
	return value
}

func (o *options) has(flag string) bool {
	_, has := o.flags[flag]
	delete(o.flags, flag)
	return has
}

// in is the ID of a resource in the resource group of the command.
func (o *options) in(typ string) string {
	return "/subscriptions/" + o.shell.Env.SubscriptionID + "/resourceGroups/" + o.need("resource-group") + "/providers/" + typ
}

// az runs a command of the command line.
func (s *Shell) az(words []string) string {
	s.Helper()
	first := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
	if first < 0 {
		first = len(words)
	}
	o := &options{shell: s, name: strings.Join(words[:first], " "), flags: map[string][]string{}}
	flag := ""
	for _, w := range words[first:] {
		if name, is := strings.CutPrefix(w, "--"); is {
			flag = name
			o.flags[flag] = nil
			continue
		}
		o.flags[flag] = append(o.flags[flag], w)
	}
	commands := map[string]func(*options) map[string]any{
		"network vnet create": s.createNetwork, "network vnet show": s.showNetwork,
		"network vnet subnet create": s.createSubnet, "network vnet subnet show": s.showSubnet,
		"identity create": s.createIdentity, "identity show": s.showIdentity,
		"identity federated-credential create": s.createCredential,
		"role definition create":               s.defineRole, "role assignment create": s.assignRole,
		"aks create": s.createCluster, "aks show": s.showCluster, "aks update": s.updateCluster,
		"aks maintenanceconfiguration add": s.addWindow,
		"aks nodepool show":                s.showPool, "aks nodepool update": s.updatePool, "aks nodepool scale": s.updatePool,
		"deployment group create": s.deployGroup, "deployment sub create": s.deploySubscription,
	}
	run := commands[o.name]
	if run == nil {
		s.Fatalf("az %s is not played here", o.name)
	}
	query, output := o.one("query"), o.one("output")
	answer := run(o)
	if len(o.flags) > 0 {
		s.Fatalf("az %s: flags %v are not played here", o.name, slices.Sorted(maps.Keys(o.flags)))
	}
	if output == "tsv" {
		return fmt.Sprint(find(answer, query))
	}
	text, err := json.Marshal(answer)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// find follows a query: names with dots, in which the command line leaves out properties.
func find(answer map[string]any, query string) any {
	var v any = answer
	if p, is := answer["properties"].(map[string]any); is && query != "id" && !strings.HasPrefix(query, "properties.") {
		v = p
	}
	for name := range strings.SplitSeq(query, ".") {
		m, _ := v.(map[string]any)
		if v = m[name]; v == nil && name == "issuerUrl" { // as the command line writes it
			v = m["issuerURL"]
		}
	}
	return v
}

func (s *Shell) createNetwork(o *options) map[string]any {
	return s.ask(http.MethodPut, o.in("Microsoft.Network/virtualNetworks/"+o.need("name")), networkVersion, map[string]any{
		"location":   o.need("location"),
		"properties": map[string]any{"addressSpace": map[string]any{"addressPrefixes": o.list("address-prefixes")}},
	})
}

func (s *Shell) showNetwork(o *options) map[string]any {
	return s.ask(http.MethodGet, o.in("Microsoft.Network/virtualNetworks/"+o.need("name")), networkVersion, nil)
}

func (o *options) subnet() string {
	return o.in("Microsoft.Network/virtualNetworks/" + o.need("vnet-name") + "/subnets/" + o.need("name"))
}

func (s *Shell) createSubnet(o *options) map[string]any {
	p := map[string]any{"addressPrefix": o.need("address-prefixes")}
	if to := o.one("delegations"); to != "" {
		p["delegations"] = []any{map[string]any{"name": "0", "properties": map[string]any{"serviceName": to}}}
	}
	return s.ask(http.MethodPut, o.subnet(), networkVersion, map[string]any{"properties": p})
}

func (s *Shell) showSubnet(o *options) map[string]any {
	return s.ask(http.MethodGet, o.subnet(), networkVersion, nil)
}

func (s *Shell) createCluster(o *options) map[string]any {
	network := map[string]any{"loadBalancerSku": "standard"}
	for flag, key := range map[string]string{"network-plugin": "networkPlugin", "network-plugin-mode": "networkPluginMode",
		"network-dataplane": "networkDataplane", "network-policy": "networkPolicy"} {
		if v := o.one(flag); v != "" {
			network[key] = v
		}
	}
	id := o.in("Microsoft.ContainerService/managedClusters/" + o.need("name"))
	p := map[string]any{
		"dnsPrefix": id[strings.LastIndexByte(id, '/')+1:], "networkProfile": network,
		"agentPoolProfiles": []any{map[string]any{"name": "nodepool1", "mode": "System", "osType": "Linux", "count": 3,
			"vmSize": "Standard_D4s_v5", "vnetSubnetID": o.need("vnet-subnet-id")}},
		"oidcIssuerProfile":       map[string]any{"enabled": o.has("enable-oidc-issuer")},
		"securityProfile":         map[string]any{"workloadIdentity": map[string]any{"enabled": o.has("enable-workload-identity")}},
		"autoUpgradeProfile":      map[string]any{"upgradeChannel": o.one("auto-upgrade-channel"), "nodeOSUpgradeChannel": "NodeImage"},
		"nodeProvisioningProfile": map[string]any{"mode": modeOf(o)},
	}
	if subnet := o.one("apiserver-subnet-id"); subnet != "" {
		p["apiServerAccessProfile"] = map[string]any{"enableVnetIntegration": o.has("enable-apiserver-vnet-integration"), "subnetId": subnet}
	}
	if o.has("generate-ssh-keys") {
		p["linuxProfile"] = map[string]any{"adminUsername": "azureuser",
			"ssh": map[string]any{"publicKeys": []any{map[string]any{"keyData": "ssh-ed25519 AAAA generated"}}}}
	}
	return s.ask(http.MethodPut, id, clusterVersion, map[string]any{"location": o.need("location"), "properties": p,
		"identity": map[string]any{
			"type": "UserAssigned", "userAssignedIdentities": map[string]any{o.need("assign-identity"): map[string]any{}},
		}})
}

// modeOf is the mode of node provisioning of a command, Manual where it has none.
func modeOf(o *options) string {
	if mode := o.one("node-provisioning-mode"); mode != "" {
		return mode
	}
	return "Manual"
}

func (s *Shell) showCluster(o *options) map[string]any {
	return s.ask(http.MethodGet, o.in("Microsoft.ContainerService/managedClusters/"+o.need("name")), clusterVersion, nil)
}

// updateCluster reads a cluster and writes it as a whole, as the command line does.
func (s *Shell) updateCluster(o *options) map[string]any {
	id := o.in("Microsoft.ContainerService/managedClusters/" + o.need("name"))
	is := s.ask(http.MethodGet, id, clusterVersion, nil)
	p, _ := is["properties"].(map[string]any)
	if mode := o.one("node-provisioning-mode"); mode != "" {
		p["nodeProvisioningProfile"] = map[string]any{"mode": mode}
	}
	if o.has("enable-oidc-issuer") {
		p["oidcIssuerProfile"] = map[string]any{"enabled": true}
	}
	if o.has("enable-workload-identity") {
		p["securityProfile"] = map[string]any{"workloadIdentity": map[string]any{"enabled": true}}
	}
	return s.ask(http.MethodPut, id, clusterVersion, is)
}

// addWindow makes a maintenance window that opens once in some weeks.
func (s *Shell) addWindow(o *options) map[string]any {
	number := func(flag string) int {
		n, err := strconv.Atoi(o.need(flag))
		if err != nil {
			s.Fatalf("az %s: --%s: %v", o.name, flag, err)
		}
		return n
	}
	if typ := o.need("schedule-type"); typ != "Weekly" {
		s.Fatalf("az %s: --schedule-type %s is not played here", o.name, typ)
	}
	weekly := map[string]any{"intervalWeeks": number("interval-weeks"), "dayOfWeek": o.need("day-of-week")}
	id := o.in("Microsoft.ContainerService/managedClusters/" + o.need("cluster-name") + "/maintenanceConfigurations/" + o.need("name"))
	return s.ask(http.MethodPut, id, clusterVersion, map[string]any{"properties": map[string]any{"maintenanceWindow": map[string]any{
		"schedule": map[string]any{"weekly": weekly}, "durationHours": number("duration"), "startTime": o.need("start-time"),
	}}})
}

func (o *options) pool() string {
	return o.in("Microsoft.ContainerService/managedClusters/" + o.need("cluster-name") + "/agentPools/" + o.need("name"))
}

func (s *Shell) showPool(o *options) map[string]any {
	return s.ask(http.MethodGet, o.pool(), clusterVersion, nil)
}

// updatePool reads an agent pool and writes it as a whole, as the command line does.
func (s *Shell) updatePool(o *options) map[string]any {
	id := o.pool()
	is := s.ask(http.MethodGet, id, clusterVersion, nil)
	p, _ := is["properties"].(map[string]any)
	if o.has("disable-cluster-autoscaler") {
		p["enableAutoScaling"], p["minCount"], p["maxCount"] = false, nil, nil
	}
	if text := o.one("node-count"); text != "" {
		count, err := strconv.Atoi(text)
		if err != nil {
			s.Fatal(err)
		}
		p["count"] = count
	}
	return s.ask(http.MethodPut, id, clusterVersion, is)
}

func (s *Shell) deployGroup(o *options) map[string]any {
	return s.deploy(o, "/subscriptions/"+s.Env.SubscriptionID+"/resourceGroups/"+o.need("resource-group"))
}

func (s *Shell) deploySubscription(o *options) map[string]any {
	o.need("location")
	return s.deploy(o, "/subscriptions/"+s.Env.SubscriptionID)
}

func (s *Shell) deploy(o *options, scope string) map[string]any {
	text, err := os.ReadFile(filepath.Join(s.Root, o.need("template-file")))
	if err != nil {
		s.Fatal(err)
	}
	parameters := map[string]any{}
	for _, p := range o.list("parameters") {
		name, value, _ := strings.Cut(p, "=")
		parameters[name] = value
	}
	d := template.Deployment{TB: s.TB, Env: s.Env, Scope: scope, Refused: func(status int, answer []byte) {
		s.Refused = fmt.Sprintf("%d: %s", status, answer)
	}}
	outputs := map[string]any{}
	for name, value := range d.Deploy(text, parameters) {
		outputs[name] = map[string]any{"value": value}
	}
	return map[string]any{"properties": map[string]any{"outputs": outputs}}
}
