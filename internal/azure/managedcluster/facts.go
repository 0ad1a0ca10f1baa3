// Package managedcluster says what an AKS cluster tells of itself: where its API
// server is, how its network is made, which identity its kubelets have, whether it
// runs, and whether AKS provisions nodes for it.
//
// [Parse] reads both forms in which Azure tells it: the resource as Azure Resource
// Manager answers it, and what "az aks show -o json" prints. [Read] asks Azure.
// Nothing here decides anything: config compares facts with settings, the boot data
// are made from both.
package managedcluster

import (
	"reflect"
	"slices"
	"strings"
)

// Facts are what a managed cluster tells of itself. Text is empty where the cluster
// says nothing.
type Facts struct {
	// ID is the resource id of the cluster; Subscription, ResourceGroup and Name are
	// its parts.
	ID, Subscription, ResourceGroup, Name string
	// TenantID is the tenant of the cluster's identity.
	TenantID string
	// Location is the region in Azure's short form, such as eastus.
	Location string
	// NodeResourceGroup is where AKS keeps the cluster's machines (MC_...).
	NodeResourceGroup string
	// FQDN and PrivateFQDN are the API server's host names; Private says that machines
	// reach it by the private one.
	FQDN, PrivateFQDN string
	Private           bool

	Network Network
	Kubelet Identity
	// ServicePrincipal is the client id of the service principal that the cluster signs
	// in to Azure with; empty where it has a managed identity.
	ServicePrincipal string
	// Owner is the identity with which the cluster's control plane acts in Azure.
	Owner ClusterIdentity
	// APIServerSubnetID is the subnet of the network that the API server is in; empty
	// where it is in none of the user's.
	APIServerSubnetID string
	// AdminUsername and SSHPublicKeys are what people log in to machines with.
	AdminUsername string
	SSHPublicKeys []string
	// SSHAccess is LocalUser or Disabled on machines of the system pool.
	SSHAccess string
	Pools     AgentPools

	State State

	Proxy Proxy
	// CustomCAs are certificates that machines trust, each base64 of its PEM text.
	CustomCAs []string
	// OIDCIssuer is the URL of the issuer of service account tokens.
	OIDCIssuer string
	// WorkloadIdentity says that AKS gives pods that ask for it a token with which they
	// sign in to Azure.
	WorkloadIdentity bool
	// ArtifactSource is Cache where machines bootstrap from a registry of one's own,
	// else Direct; ContainerRegistryID is the resource id of that registry.
	ArtifactSource, ContainerRegistryID string
	// UnattendedUpgrades says that machines install security updates themselves: the
	// node OS upgrade channel is Unmanaged.
	UnattendedUpgrades bool
}

// State is what of a cluster changes while it lives.
type State struct {
	// KubernetesVersion is the version that the control plane runs, as 1.34.2.
	KubernetesVersion string
	// Provisioning is what AKS is doing with the cluster, such as Succeeded, Stopping
	// or Starting; Power is Running or Stopped.
	Provisioning, Power string
	// NodeProvisioning is Auto while AKS's own node auto-provisioning is on, else
	// Manual; DefaultNodePools says whether it makes NodePools (Auto or None).
	NodeProvisioning, DefaultNodePools string
	// UpgradeChannel and NodeOSUpgradeChannel are how AKS upgrades the cluster.
	UpgradeChannel, NodeOSUpgradeChannel string
}

// Network is how the cluster's network is made.
type Network struct {
	// Plugin is azure, kubenet or none; Mode is overlay or empty; Dataplane is azure,
	// cilium or empty; Policy is azure, calico, cilium, none or empty.
	Plugin, Mode, Dataplane, Policy string
	DNSServiceIP                    string
	// OutboundType is how machines reach the internet, such as loadBalancer;
	// LoadBalancerSKU is basic or standard.
	OutboundType, LoadBalancerSKU      string
	IPFamilies, PodCIDRs, ServiceCIDRs []string
	// IMDSKeptFromPods says that pods do not reach the instance metadata service. The
	// cluster tells it to clients of API versions in preview alone.
	IMDSKeptFromPods bool
}

// Identity is the user-assigned identity with which kubelets pull images.
type Identity struct {
	ResourceID, ClientID, ObjectID string
}

// ClusterIdentity is what a control plane signs in to Azure with.
type ClusterIdentity struct {
	// Type is SystemAssigned, UserAssigned or None.
	Type string
	// PrincipalIDs are the object ids of the identities, in order.
	PrincipalIDs []string
}

// AgentPools are the agent pools of a cluster, as it lists them.
type AgentPools []AgentPool

// AgentPool is one of the cluster's agent pools.
type AgentPool struct {
	// Name is the pool's; Mode is System, User, Gateway or Machines; Type is
	// VirtualMachineScaleSets, VirtualMachines or AvailabilitySet.
	Name, Mode, Type string
	// Provisioning is what AKS is doing with the pool, such as Creating or Succeeded.
	Provisioning string
	// SubnetID is the subnet of a network of the user's own; empty where AKS made the
	// network. PodSubnetID is that of pods where they have one of their own.
	SubnetID, PodSubnetID string
	// PodIPAllocation is how pods of a subnet of their own get addresses:
	// DynamicIndividual, StaticBlock or empty.
	PodIPAllocation string
	// OS is Linux or Windows; AutoScaling says that the cluster autoscaler scales the pool.
	OS          string
	AutoScaling bool
}

// Proxy is how machines reach the internet through a proxy.
type Proxy struct {
	// HTTPS may be empty: then HTTP serves both.
	HTTP, HTTPS string
	// NoProxy are the hosts, domains and networks that are reached without it. Whether
	// those that AKS itself needs are among them depends on the API version.
	NoProxy []string
	// TrustedCA is a certificate that machines trust, base64 of its PEM text.
	TrustedCA string
}

// modeAuto is the node provisioning mode in which AKS buys nodes itself.
const modeAuto = "Auto"

// APIServer is the host name of the API server that machines join, without scheme
// and port; empty where the cluster has none.
func (f *Facts) APIServer() string {
	if f.Private && f.PrivateFQDN != "" {
		return f.PrivateFQDN
	}
	if f.FQDN == "" {
		return f.PrivateFQDN
	}
	return f.FQDN
}

// stopped reports whether the cluster is stopped, or on its way there. One that is
// starting is neither: it has an API server again, and needs nodes.
func (s *State) stopped() bool {
	if strings.EqualFold(s.Provisioning, "Starting") {
		return false
	}
	return strings.EqualFold(s.Provisioning, "Stopping") || strings.EqualFold(s.Power, "Stopped")
}

// SubnetID is the subnet of the cluster's system pool, else of its first pool that
// names one; empty where AKS made the network.
func (f *Facts) SubnetID() string {
	for _, p := range f.Pools {
		if strings.EqualFold(p.Mode, "System") && p.SubnetID != "" {
			return p.SubnetID
		}
	}
	for _, p := range f.Pools {
		if p.SubnetID != "" {
			return p.SubnetID
		}
	}
	return ""
}

// Lasting are the facts that machines are made from, in a form in which they can be
// compared: those that change while a cluster lives, and say nothing about new machines, are
// left out, and so is what Azure may say in several ways. It does not tell upper case from
// lower case in resource ids, keeps no order in some lists, and may leave out empty ones.
func (f *Facts) Lasting() Facts {
	l := *f
	l.State = State{}
	l.Pools = nil
	for _, id := range []*string{&l.ID, &l.Subscription, &l.ResourceGroup, &l.Name, &l.NodeResourceGroup,
		&l.Kubelet.ResourceID, &l.APIServerSubnetID, &l.ContainerRegistryID} {
		*id = strings.ToLower(*id)
	}
	for _, list := range []*[]string{&l.SSHPublicKeys, &l.CustomCAs, &l.Proxy.NoProxy, &l.Owner.PrincipalIDs} {
		*list = slices.Sorted(slices.Values(*list))
	}
	for _, list := range []*[]string{&l.Network.IPFamilies, &l.Network.PodCIDRs, &l.Network.ServiceCIDRs} {
		if len(*list) == 0 {
			*list = nil // their order means something
		}
	}
	return l
}

// Difference names the facts that machines are made from in which two readings
// differ, as Go names the fields.
func (f *Facts) Difference(other *Facts) string {
	a, b := reflect.ValueOf(f.Lasting()), reflect.ValueOf(other.Lasting())
	var names []string
	for i := range a.NumField() {
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			names = append(names, a.Type().Field(i).Name)
		}
	}
	return strings.Join(names, ", ")
}
