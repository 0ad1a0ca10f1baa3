package prerequisites

import (
	"net/netip"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// Source is one place that facts are read from. It is unread as a whole or not at all.
type Source string

// The sources.
const (
	SourceCluster      Source = "the managed cluster"
	SourceNetwork      Source = "the cluster's network"
	SourceSecurity     Source = "the security groups"
	SourceRoutes       Source = "the route tables"
	SourceSubscription Source = "the subscription"
	SourceProviders    Source = "the resource providers"
	SourceFeatures     Source = "the preview features"
	SourceRoles        Source = "the role assignments"
	SourceQuota        Source = "the quota"
	SourceMaintenance  Source = "the maintenance windows"
	SourceKubernetes   Source = "the API server"
	SourceDefinitions  Source = "the custom resource definitions"
	SourceDeployments  Source = "the Deployments"
	SourceTokens       Source = "the bootstrap tokens"
	SourceNodePools    Source = "the NodePools"
	SourceNodeClasses  Source = "the AKSNodeClasses"
	SourceMode         Source = "the NodeAutoProvisioning"
	SourceSize         Source = "the numbers of nodes and pods"
	SourceAccounts     Source = "the rights of nap's ServiceAccount"
)

// LeftToDoctor are the sources that the controller does not ask: its identity has no right
// there, since a right to read the assignments of a subscription or the Secrets of a
// namespace is worth more to a thief than the check to the cluster. The person who
// runs nap doctor has it.
func LeftToDoctor() []Source {
	return []Source{SourceSubscription, SourceProviders, SourceRoles, SourceRoutes, SourceTokens, SourceAccounts}
}

// Facts are what was read. A part is nil or empty where its source could not be read,
// and Unread says why.
type Facts struct {
	// Now is the time on this machine when the facts were read.
	Now time.Time
	// Cluster is what the managed cluster tells of itself.
	Cluster *managedcluster.Facts
	// Network are the subnets of nodes, pods and the API server.
	Network *Network
	// Subscription is what the subscription tells of itself.
	Subscription Subscription
	// Roles are what nap's identity and the cluster's may do.
	Roles *Roles
	// Quotas are the limits of the region, in vCPUs, by name.
	Quotas map[string]Quota
	// Images are the node images that the gallery has for a plain class, NoImages why it
	// has none; Prices counts the first page of the region's prices, NoPrices is why there
	// is none.
	Images   []string
	NoImages string
	Prices   int
	NoPrices string
	// NoPriceAPI says that the cloud has no retail price API that could be asked.
	NoPriceAPI bool
	// Windows are the maintenance windows, by name.
	Windows []Window
	// Kubernetes is what the API server tells.
	Kubernetes *Kubernetes

	// Unread is why a source could not be read.
	Unread map[Source]string
}

// OutboundType is how the cluster's machines reach the internet; empty where that is not
// known.
func (f *Facts) OutboundType() string {
	if f.Cluster == nil {
		return ""
	}
	return f.Cluster.Network.OutboundType
}

// WithoutAzure are facts of which Azure has told none, and why.
func WithoutAzure(now time.Time, why string) *Facts {
	f := &Facts{Now: now, Unread: map[Source]string{}}
	for _, source := range []Source{SourceCluster, SourceNetwork, SourceSecurity, SourceRoutes, SourceSubscription,
		SourceProviders, SourceFeatures, SourceRoles, SourceQuota, SourceMaintenance} {
		f.Unread[source] = why
	}
	return f
}

// Subscription is what a subscription tells of itself.
type Subscription struct {
	// State is Enabled, or why the subscription is not usable.
	State string
	// Providers are the registration states of resource providers by namespace.
	Providers map[string]string
	// ManagedGPU is the registration state of FeatureManagedGPU.
	ManagedGPU string
}

// FeatureManagedGPU is the preview feature without which AKS makes no machines that bring
// NVIDIA's device plugin.
const FeatureManagedGPU = "ManagedGPUExperiencePreview"

// Network are the parts of the virtual network that nap's machines and the API server use.
type Network struct {
	// AddressSpace is the virtual network's.
	AddressSpace []netip.Prefix
	// Subnets are those that were read, by resource id in lower case.
	Subnets map[string]*Subnet
	// Nodes are the keys of the subnets of machines, in order.
	Nodes []string
	// NetworkID is the resource id of the virtual network.
	NetworkID string
}

// Subnet is one subnet.
type Subnet struct {
	ID       string
	Prefixes []netip.Prefix
	// Delegations are the services that the subnet is delegated to.
	Delegations []string
	// Taken counts the addresses in use, Foreign those that resources outside of the
	// cluster's node resource group use.
	Taken, Foreign int
	// NATGateway says that one is attached.
	NATGateway bool
	// Rules are the security rules of the group that is attached, GroupID its id; both
	// are empty where there is none. They are of SourceSecurity.
	Rules   []Rule
	GroupID string
	// RouteTableID is the attached table; DefaultRoute is the next hop type of its route
	// for 0.0.0.0/0, such as VirtualAppliance, empty where it has none. It is of
	// SourceRoutes.
	RouteTableID, DefaultRoute string
}

// Free is how many addresses the subnet can still give away. Azure keeps five of each
// prefix for itself.
func (s *Subnet) Free() int { return s.size() - s.Taken }

func (s *Subnet) size() int {
	const kept, most = 5, 30
	n := 0
	for _, p := range s.Prefixes {
		n += max(0, 1<<min(p.Addr().BitLen()-p.Bits(), most)-kept)
	}
	return n
}

// Roles are what identities may do.
type Roles struct {
	// Owner are the grants of the cluster's own identity, Nap those of nap's.
	Owner, Nap []Grant
	// NapPrincipal is the object id that Nap is of.
	NapPrincipal string
	// Needs are the actions that nap's identity needs, with the scope of each.
	Needs []Need
}

// Grant are actions that a role assignment permits at a scope and below.
type Grant struct {
	Scope   string
	Actions []string
	// NotActions are taken out of Actions.
	NotActions []string
}

// Need is one action that is needed at a scope.
type Need struct{ Action, Scope string }

// Quota is a limit of the subscription in a region.
type Quota struct{ Limit, Used int64 }

// Kubernetes is what the API server tells.
type Kubernetes struct {
	// Version is that which the API server serves, as 1.34.2.
	Version string
	// Clock is the API server's time when Facts.Now was taken.
	Clock time.Time
	// Missing are the definitions that the cluster lacks; Outdated are those that it
	// serves in another form than this nap's.
	Missing, Outdated []string
	// DefinitionsRelease is the Helm release that has made the definitions, as namespace/name;
	// empty where none has.
	DefinitionsRelease string
	// Autoscalers are Deployments of other autoscalers, as namespace/name.
	Autoscalers []string
	// NodePools are the NodePools, by name.
	NodePools []NodePool
	// ManagedGPU are the AKSNodeClasses whose machines bring NVIDIA's device plugin, by name.
	ManagedGPU []string
	// Token is the state of the bootstrap tokens.
	Token Token
	// Outbound is what the controller has noted of the outbound type.
	Outbound Outbound
	// Controller is nap's own Deployment; of several, as beside a shadow, the one whose
	// container may use least memory.
	Controller Controller
	// Accounts are the ServiceAccounts of nap's Deployments, without those of shadows, which
	// write next to nothing. They are of SourceAccounts.
	Accounts []Account
	// Nodes and Pods are how many of them there are. They are of SourceSize.
	Nodes, Pods int64
}

// Controller is nap's own Deployment in the cluster.
type Controller struct {
	// Deployment is its namespace/name, empty where there is none; Release is the name of the
	// Helm release that has made it, which may be another.
	Deployment, Release string
	// MemoryLimit is how much memory a replica may use, in bytes; 0 where that is not limited.
	MemoryLimit int64
}

// Account is a ServiceAccount that a Deployment of nap runs as, and what it may do.
type Account struct {
	// Name is its namespace/name, Release the Helm release that has made the Deployment.
	Name, Release string
	// Denied are the permissions that it needs and lacks, as kubectl auth can-i reads them;
	// Asked counts those that it needs.
	Denied []string
	Asked  int
}

// NodePool is a NodePool as far as its checks need it.
type NodePool struct {
	Name string
	// LimitCPU is spec.limits.cpu in vCPUs; negative where there is none.
	LimitCPU int64
	// Nothing is why the NodePool can buy nothing; empty while it can.
	Nothing string
	// Quota is how many vCPUs the quotas let it have in all, negative where none is known;
	// QuotaOf are the names of those that decide.
	Quota   int64
	QuotaOf []string
}

// Outbound is what is remembered of the cluster's outbound type.
type Outbound struct {
	// Before is the type with which machines were made that still run, as far as it is
	// another than today's; Machines counts them.
	Before   string
	Machines int
}

// Token is the state of the cluster's bootstrap tokens.
type Token struct {
	// Usable counts tokens that machines can join with now.
	Usable int
	// Ended names a token that has ended, and when; Ends is when the last usable one ends,
	// zero for never.
	Ended string
	Ends  time.Time
}

// Window is a maintenance window of the cluster.
type Window struct {
	Name string
	// Open says that it is open now; Next is when that changes, zero for never.
	Open bool
	Next time.Time
	// Wrong is why its schedule cannot be read, or "".
	Wrong string
}
