// Package config is the configuration of the Azure provider: which cluster, which
// Azure, how machines join.
//
// [Load] reads it from the environment variables that AKS's provisioner has
// always used, strictly: what is set and wrong is refused with the variable, the
// value and what is allowed. [Config.Learn] takes what is not set from the cluster
// itself, and refuses what contradicts it. [Cloud.Azure] turns the cloud's name, or a file of
// endpoints, into the SDK's configuration; a simulated Azure is just another
// cloud there.
package config

import (
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
)

// The network plugins and their modes.
const (
	PluginAzure = "azure"
	PluginNone  = "none"
	ModeOverlay = "overlay"
)

// Config is everything that the provider needs to know about its cluster.
type Config struct {
	// ClusterName tags every resource, so that two clusters may share a
	// subscription.
	ClusterName string
	// ClusterEndpoint is the API server that machines join, as https URL.
	ClusterEndpoint string
	// ClusterCA are the PEM certificates that the API server's is signed by.
	ClusterCA []byte
	// BootstrapToken is the token (id.secret) with which a machine asks for its
	// certificate.
	BootstrapToken jointoken.Token
	// SSHPublicKey and AdminUsername are for people who must log in to a machine.
	SSHPublicKey  string
	AdminUsername string

	// SubscriptionID is the subscription of the cluster and of its machines.
	SubscriptionID string
	// Location is the Azure region, such as eastus.
	Location string
	// ResourceGroup is the one that the cluster itself is in. It may be unknown
	// (empty): then what the cluster says of itself is not read, and every variable
	// that it would fill in must be set.
	ResourceGroup string
	// NodeResourceGroup is where AKS keeps the cluster's machines (MC_...).
	NodeResourceGroup string
	// VNETSubnetID is the cluster's own subnet.
	VNETSubnetID string
	// VNETGUID is the id that Azure gave the cluster's virtual network; nodes of an
	// overlay cluster carry it as a label. Where it is not given (empty) it is read
	// from Azure.
	VNETGUID string

	// NetworkPlugin is azure or none; NetworkPluginMode is overlay or empty, and
	// must be empty with none.
	NetworkPlugin     string
	NetworkPluginMode string
	// NetworkPolicy and NetworkDataplane are what the cluster was made with.
	NetworkPolicy    string
	NetworkDataplane string
	// DNSServiceIP is where machines' kubelets send pods for names. It is empty where
	// neither a variable nor the cluster says: the caller looks the Service up, or
	// takes DefaultDNSServiceIP.
	DNSServiceIP string

	// NodeIdentities are the user-assigned identities of every machine, the kubelets'
	// own among them.
	NodeIdentities []string
	// KubeletIdentityClientID is what kubelets pull images with; machines carry it
	// as a label, and a change of it replaces them.
	KubeletIdentityClientID string
	// DiskEncryptionSetID encrypts the system disks with a key of one's own.
	DiskEncryptionSetID string
	// AdditionalTags are put on every resource; those of the node class win.
	AdditionalTags map[string]string

	// VMMemoryOverhead is the fraction of a size's memory that its machines never
	// report. Too low, and pods are planned for memory that is not there; too high,
	// and memory is paid for but not used.
	VMMemoryOverhead float64
	// ExactResources plans with all of a size's memory, fractions of a GiB included.
	// Without it sizes count as the provider that users migrate from counts them.
	ExactResources bool

	// LaunchSettle is how long a launch is watched for an early refusal before the
	// machine counts as launched. Within it, a refusal costs one retry of the same
	// claim; later, the claim.
	LaunchSettle time.Duration

	// UpgradeCheck is how long what was read of the control plane's version, of node
	// images and of maintenance windows is believed; zero is [DefaultUpgradeCheck].
	UpgradeCheck time.Duration

	// ProvisionMode says how machines are made, see the constants of that name; it is
	// empty where no variable says, until Learn has chosen. ModeChoice is why it chose
	// so, empty where a variable says.
	ProvisionMode, ModeChoice string
	// MachinesPool is the agent pool of AKS machines, CreatePool lets nap make it where
	// it is missing, and ManageMachines makes existing AKS machines be looked after
	// although new machines are made in another way.
	MachinesPool   string
	CreatePool     bool
	ManageMachines bool
	// NoMachineAPI is why AKS does not make machines of agent pools here, in Azure's words;
	// empty where it does, and where it was not asked. Set it before Learn.
	NoMachineAPI string
	Batching     Batching
	// SIGSubscriptionID is the subscription of AKS's shared image galleries; empty
	// means the community galleries.
	SIGSubscriptionID string
	// SIGTokenServer gives out tokens of the galleries' tenant, where that is
	// another than the cluster's; an URL. AKS needs none for its machines.
	SIGTokenServer string

	// PlacementScores has spot machines asked for first where Azure holds them likely
	// to be placed, of all offerings that cost the same.
	PlacementScores bool

	// LogRequests has every request to Azure logged, without bodies and other secrets.
	LogRequests bool

	// Boot is what plain machines are told beside the cluster's facts.
	Boot Boot

	// Cloud is which Azure the cluster is in.
	Cloud Cloud

	// Facts are what the cluster told of itself at the start; the zero value where it
	// was not asked.
	Facts managedcluster.Facts

	// given are the variables of the network that were set, be it to nothing, and those
	// of Boot whose default is a value.
	given given
}

// given are names of variables that are set.
type given map[string]bool

// DefaultDNSServiceIP is the address of a cluster's DNS Service in the service
// network that AKS gives to clusters that name none.
const DefaultDNSServiceIP = "10.0.0.10"

// The ways in which machines are made.
const (
	// ModeVMs makes virtual machines, interfaces and boot data itself.
	ModeVMs = "aksscriptless"
	// ModeAKSMachines has AKS make machines of an agent pool, each on its own call;
	// ModeAKSMachinesBatched joins the calls for machines that are alike.
	ModeAKSMachines        = "aksmachineapi"
	ModeAKSMachinesBatched = "aksmachineapiheaderbatch"
)

// Batching says how requests for machines are joined into one: Idle is how long
// one waits for the next machine, Max how long in all, Size how many it holds.
type Batching struct {
	Idle, Max time.Duration
	Size      int
}

// StartsAKSMachines reports whether new machines are AKS machines.
func (c *Config) StartsAKSMachines() bool {
	return c.ProvisionMode == ModeAKSMachines || c.ProvisionMode == ModeAKSMachinesBatched
}

// HasAKSMachines reports whether there may be AKS machines to look after.
func (c *Config) HasAKSMachines() bool { return c.StartsAKSMachines() || c.ManageMachines }

// AwaitsMachineAPI reports whether AKS machines would be made, by nap's own choice, were it not that
// AKS makes none here.
func AwaitsMachineAPI(c *Config) bool {
	return c.ModeChoice != "" && c.NoMachineAPI != "" && c.MachinesPool != ""
}

// PoolID is the resource id of the agent pool of AKS machines.
func (c *Config) PoolID() string {
	return "/subscriptions/" + c.SubscriptionID + "/resourceGroups/" + c.ResourceGroup +
		"/providers/Microsoft.ContainerService/managedClusters/" + c.ClusterName + "/agentPools/" + c.MachinesPool
}

// maxPodsOverlay, maxPodsSubnet and maxPodsOther are the machine's pods where
// the node class does not say, by the way that pods get their addresses.
const (
	maxPodsOverlay = 250
	maxPodsSubnet  = 30
	maxPodsOther   = 110
)

// DefaultMaxPods is how many pods a machine runs where its class does not say.
func (c *Config) DefaultMaxPods() int {
	switch {
	case c.NetworkPlugin == PluginNone, c.NetworkPlugin == PluginAzure && c.NetworkPluginMode == ModeOverlay:
		return maxPodsOverlay
	case c.NetworkPlugin == PluginAzure && c.NetworkPluginMode == "":
		return maxPodsSubnet
	}
	return maxPodsOther
}

// PodsTakeNodeSubnet reports whether every pod takes an address of the machines'
// subnet, so that a machine's interface must hold one for each.
func (c *Config) PodsTakeNodeSubnet() bool {
	return c.NetworkPlugin == PluginAzure && c.NetworkPluginMode == ""
}
