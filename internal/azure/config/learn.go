package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/network"
)

const (
	defaultAdminUsername = "azureuser"
	dataplaneCilium      = "cilium"
)

// Learn completes a configuration that Load has read with what the cluster tells of
// itself. A variable that is set wins; one that the cluster contradicts, so that
// machines made with it could not work, is refused by name. ownSubnet is the subnet
// of the network that AKS made for the cluster, empty where the cluster is in a
// network of the user's own. Nil facts mean that the cluster could not be asked: then
// the variables must say everything. Where no variable says how machines are made, Learn
// chooses: AKS machines where the cluster has a pool for them or nap may make one, else
// plain machines. The error names every fault.
func (c Config) Learn(facts *managedcluster.Facts, ownSubnet string) (Config, error) {
	l := &learner{}
	l.mode(&c, facts) // first: the mode decides what is mandatory
	if facts != nil {
		c.Facts = *facts
		l.contradictions(&c, facts)
		l.fill(&c, facts, ownSubnet)
		l.boot(&c, facts)
	}
	l.defaults(&c)
	l.missing(&c, facts != nil)
	return c, errors.Join(l.errs...)
}

// learner collects what is wrong.
type learner struct{ errs []error }

func (l *learner) refuse(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// differ refuses a variable whose value is not what the cluster says, both in words.
func (l *learner) differ(name, is, says string) {
	l.refuse("%s is %s, the cluster says %s; remove the variable, and nap takes what the cluster says", name, is, says)
}

// contradictions refuses variables that are set and cannot be true of the cluster.
func (l *learner) contradictions(c *Config, f *managedcluster.Facts) {
	for _, v := range []struct{ name, is, says string }{
		{"LOCATION", c.Location, f.Location},
		{"AZURE_NODE_RESOURCE_GROUP", c.NodeResourceGroup, f.NodeResourceGroup},
		{"KUBELET_IDENTITY_CLIENT_ID", c.KubeletIdentityClientID, f.Kubelet.ClientID},
	} {
		if v.is != "" && v.says != "" && !strings.EqualFold(v.is, v.says) {
			l.differ(v.name, v.is, v.says)
		}
	}
	n := &f.Network
	if plugin := cmp.Or(n.Plugin, PluginAzure); plugin != PluginAzure && plugin != PluginNone {
		l.refuse("the cluster's network plugin is %s, in whose networks nap's machines do not work; "+
			"it must be %s or %s: move the cluster to Azure CNI Overlay", plugin, PluginAzure, PluginNone)
	} else if c.given["NETWORK_PLUGIN"] && c.NetworkPlugin != plugin {
		l.differ("NETWORK_PLUGIN", c.NetworkPlugin, plugin)
	}
	for _, v := range []struct {
		name, is, says string
		words          func(string) string
	}{
		{"NETWORK_PLUGIN_MODE", c.NetworkPluginMode, n.Mode, modeWords},
		{"NETWORK_DATAPLANE", c.NetworkDataplane, n.Dataplane, dataplaneWords},
		{"NETWORK_POLICY", c.NetworkPolicy, n.Policy, policyWords},
	} {
		if c.given[v.name] && v.words(v.is) != v.words(v.says) {
			l.differ(v.name, v.words(v.is), v.words(v.says))
		}
	}
	l.endpoint(c, f)
	l.subnet(c, f)
}

// endpoint refuses a name that the API server's certificate does not have: AKS's has
// these two.
func (l *learner) endpoint(c *Config, f *managedcluster.Facts) {
	u, err := url.Parse(c.ClusterEndpoint)
	if c.ClusterEndpoint == "" || err != nil || f.APIServer() == "" {
		return
	}
	is := func(name string) bool { return strings.EqualFold(u.Hostname(), name) }
	if !is(f.FQDN) && !is(f.PrivateFQDN) {
		l.differ("CLUSTER_ENDPOINT", u.Hostname(), f.APIServer())
	}
}

// modeWords says how pods get their addresses.
func modeWords(mode string) string {
	if mode == "" {
		return "node subnet"
	}
	return mode
}

// dataplaneWords says whether Cilium forwards packets: everything else is one to
// machines.
func dataplaneWords(dataplane string) string {
	if dataplane == dataplaneCilium {
		return dataplane
	}
	return "no Cilium"
}

func policyWords(policy string) string { return cmp.Or(policy, "none") }

// subnet refuses one that is not in the network of the cluster's own machines: pods
// there could not reach the others.
func (l *learner) subnet(c *Config, f *managedcluster.Facts) {
	has, err := network.ParseSubnet(c.VNETSubnetID)
	if err != nil { // not set, or refused by Load
		return
	}
	var others []string
	for _, p := range f.Pools {
		s, err := network.ParseSubnet(p.SubnetID)
		if err != nil { // AKS made the network
			continue
		}
		if s.SameVNET(has) {
			return
		}
		others = append(others, s.VNET)
	}
	switch {
	case len(others) == 0 && len(f.Pools) > 0 && !strings.EqualFold(has.ResourceGroup, f.NodeResourceGroup):
		l.differ("VNET_SUBNET_ID", "in virtual network "+has.VNET+" of resource group "+has.ResourceGroup,
			"its network is the one that AKS made in "+f.NodeResourceGroup)
	case len(others) > 0:
		slices.Sort(others)
		l.differ("VNET_SUBNET_ID", "in virtual network "+has.VNET, "its machines are in "+strings.Join(slices.Compact(others), ", "))
	}
}

// fill takes what is not set from the cluster.
func (l *learner) fill(c *Config, f *managedcluster.Facts, ownSubnet string) {
	learn := func(into *string, says string) { *into = cmp.Or(*into, says) }
	if host := f.APIServer(); host != "" {
		learn(&c.ClusterEndpoint, "https://"+host+":443")
	}
	if len(f.SSHPublicKeys) > 0 {
		learn(&c.SSHPublicKey, f.SSHPublicKeys[0])
	}
	learn(&c.AdminUsername, f.AdminUsername)
	learn(&c.Location, f.Location)
	learn(&c.NodeResourceGroup, f.NodeResourceGroup)
	learn(&c.VNETSubnetID, cmp.Or(f.SubnetID(), ownSubnet))
	learn(&c.DNSServiceIP, f.Network.DNSServiceIP)
	learn(&c.KubeletIdentityClientID, f.Kubelet.ClientID)
	learn(&c.Cloud.TenantID, f.TenantID)
	if id := f.Kubelet.ResourceID; id != "" {
		is := func(other string) bool { return strings.EqualFold(id, other) }
		if !slices.ContainsFunc(c.NodeIdentities, is) {
			c.NodeIdentities = append(slices.Clone(c.NodeIdentities), id)
		}
	}
	for _, v := range []struct {
		name, says string
		into       *string
	}{
		{"NETWORK_PLUGIN", cmp.Or(f.Network.Plugin, PluginAzure), &c.NetworkPlugin},
		{"NETWORK_PLUGIN_MODE", f.Network.Mode, &c.NetworkPluginMode},
		{"NETWORK_DATAPLANE", f.Network.Dataplane, &c.NetworkDataplane},
		{"NETWORK_POLICY", f.Network.Policy, &c.NetworkPolicy},
	} {
		if !c.given[v.name] {
			*v.into = v.says
		}
	}
}

// defaults fills in what neither a variable nor the cluster says.
func (l *learner) defaults(c *Config) {
	c.AdminUsername = cmp.Or(c.AdminUsername, defaultAdminUsername)
	if c.Facts.ID != "" {
		return
	}
	c.NetworkPlugin = cmp.Or(c.NetworkPlugin, PluginAzure)
	if !c.given["NETWORK_PLUGIN_MODE"] && c.NetworkPlugin == PluginAzure {
		c.NetworkPluginMode = ModeOverlay
	}
	if !c.given["NETWORK_DATAPLANE"] {
		c.NetworkDataplane = dataplaneCilium
	}
}

// missing refuses a configuration with which no machine could be made.
func (l *learner) missing(c *Config, asked bool) {
	if c.NetworkPlugin == PluginNone && c.NetworkPluginMode != "" {
		l.refuse("NETWORK_PLUGIN_MODE: %q is not allowed with NETWORK_PLUGIN none; leave it empty", c.NetworkPluginMode)
	}
	why := "the cluster does not say"
	if !asked {
		why = "nap could not ask the cluster, see ARM_RESOURCE_GROUP"
	}
	required := func(name, value, what string) {
		if value == "" {
			l.refuse("%s: must be set, because %s: %s", name, why, what)
		}
	}
	required("LOCATION", c.Location, "the Azure region of the cluster, such as eastus")
	required("AZURE_NODE_RESOURCE_GROUP", c.NodeResourceGroup, "the resource group of the cluster's machines (MC_...)")
	required("VNET_SUBNET_ID", c.VNETSubnetID, "the resource id of the cluster's subnet")
	if c.StartsAKSMachines() {
		return // AKS knows what its machines boot from
	}
	required("CLUSTER_ENDPOINT", c.ClusterEndpoint, "the URL of the API server that machines join")
	required("SSH_PUBLIC_KEY", c.SSHPublicKey, "the public key put on machines")
	if c.Facts.ServicePrincipal != "" && c.KubeletIdentityClientID == "" {
		l.refuse("KUBELET_IDENTITY_CLIENT_ID: must be set, with NODE_IDENTITIES, because the cluster signs in with service principal %s, "+
			"whose secret nap does not have, and has no kubelet identity; or give it one: az aks update --resource-group %s --name %s "+
			"--enable-managed-identity", c.Facts.ServicePrincipal, c.Facts.ResourceGroup, c.Facts.Name)
		return
	}
	required("KUBELET_IDENTITY_CLIENT_ID", c.KubeletIdentityClientID,
		"the client id of the identity with which kubelets pull images")
	required("NODE_IDENTITIES", strings.Join(c.NodeIdentities, ""), "the resource id of the identity with which kubelets pull images")
}
