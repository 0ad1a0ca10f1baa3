package armsim

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/authorization"
	"github.com/nodeautoprovision/nap/internal/armsim/compute"
	"github.com/nodeautoprovision/nap/internal/armsim/containerservice"
	"github.com/nodeautoprovision/nap/internal/armsim/managedidentity"
	"github.com/nodeautoprovision/nap/internal/armsim/network"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Config describes the subscription to simulate. The zero value is a whole one:
// region eastus, one AKS cluster with its node resource group, network and
// load balancer, ample quota, and the delays of the real Azure.
type Config struct {
	TenantID       string   // default: a fixed GUID
	SubscriptionID string   // default: a fixed GUID
	Region         string   // where the cluster is; must be in the catalogue; default eastus
	ResourceGroups []string // besides the cluster's own two
	Cluster        Cluster
	// ForeignSubscriptions belong to another tenant: machines may use their images
	// with a token of it alone, see [Server.ForeignToken].
	ForeignSubscriptions []string
	Principals           []Principal // that may sign in; none: anyone, with every permission
	// Account is what the subscription tells of itself.
	Account Account
	// Billing is how the subscription is paid for.
	Billing Billing

	// Seed decides every random choice; the same seed and the same calls in the
	// same order give the same delays and the same failures.
	Seed uint64
	// TimeScale divides every simulated duration: 20 makes a boot of 40 s take
	// 2 s. 0 means 1, as in the real Azure.
	TimeScale float64
	Latency   Latencies

	// PollEvery is the Retry-After of running operations, before TimeScale; 0
	// means 3 s.
	PollEvery time.Duration

	// Quota maps a usage name ("cores", "lowPriorityCores", "standardDSv5Family")
	// to its limit in vCPUs. Families that are missing get QuotaDefault.
	Quota map[string]int64
	// QuotaDefault is the limit of every family that Quota does not name;
	// 0 means 100,000. Put a family into Quota to give it no quota at all.
	QuotaDefault int64
	// UsageLag is how long the usages API takes to show what is really in use;
	// 0 means 60 s, negative none. Enforcement never lags.
	UsageLag time.Duration
	// GraphLag is the same for Resource Graph; 0 means 10 s, negative none.
	GraphLag time.Duration
	// Capacity limits how many machines of a size exist; the first rule that
	// matches counts. Without a match DefaultCapacity applies to each size, zone
	// and priority.
	Capacity []CapacityRule
	// DefaultCapacity is the number of machines of one size that one zone can
	// run at one priority; 0 means 5,000.
	DefaultCapacity int
	// Sizes are patterns of the sizes that the lists of sizes, usages and prices name;
	// nil means all. Fewer sizes make a test of something else cheap.
	Sizes []string
	// Restrictions are the sizes that the subscription may not use.
	Restrictions []Restriction
	// Limits are the request rates beyond which 429 is answered; nil means the
	// published ones, see PublishedLimits. An empty, non-nil slice means none.
	Limits []Limit
	// SpotLifetime is how long spot machines live before they are evicted; the
	// zero value evicts none of its own accord.
	SpotLifetime Distribution
	// SpotNotice is the warning before an eviction; 0 means 30 s.
	SpotNotice time.Duration

	// ImageVersions are the node image versions that exist, oldest first; nil
	// means compute.DefaultImageVersions.
	ImageVersions []string

	// ReportsProvisioning says that what runs in the machines is simulated too, and tells with
	// [Server.ReportProvisioned] how their provisioning has ended. Else it ends well as
	// soon as a machine has booted.
	ReportsProvisioning bool

	// StateFile, when set, is written after changes and read by New, so that a
	// server that was killed finds its machines again. The audit log goes to the
	// same path with the suffix .audit.
	StateFile string
	// AdminToken guards /admin/; empty switches /admin/ off.
	AdminToken string
	Logger     *slog.Logger // nil discards
}

// Account is what a subscription tells of itself beside its resources.
type Account struct {
	// Assignments are role assignments beside those of the principals and of the cluster's
	// own identity on the node resource group. They are shown, and permit nothing:
	// Config.Principals do.
	Assignments []RoleAssignment
	// State is what the subscription says of itself; default Enabled.
	State string
	// Features are the preview features that it has registered, as
	// Microsoft.ContainerService/ManagedGPUExperiencePreview; none of them is by itself.
	Features []string
	// UnregisteredProviders are resource providers that the subscription has not registered.
	UnregisteredProviders []string
}

// Cluster describes the AKS cluster of the subscription.
type Cluster struct {
	Name              string         // default "nap"
	ResourceGroup     string         // default "nap"
	NodeResourceGroup string         // default MC_<resource group>_<name>_<region>
	KubernetesVersion string         // default "1.35.1"
	Subnet            netip.Prefix   // of the nodes; default 10.224.0.0/16
	Endpoint          string         // host name of the API server; default is Azure's form
	AgentPools        []string       // of mode System; default system
	MachinesPools     []string       // of mode Machines; nil means machines, and an empty slice none
	Network           string         // one of Networks; default overlay-cilium
	Outbound          string         // how nodes reach the internet, one of Outbounds; default loadBalancer
	Properties        map[string]any // laid over the properties of the managed cluster
	Absent            bool           // there is no cluster until a client makes one of this name
	// OpenNodePools are the names of the cluster's NodePools that may buy: while there is one,
	// AKS does not switch its own node auto-provisioning off. Nil means that there is none.
	OpenNodePools func() []string
}

// Networks are the allowed values of Cluster.Network, the default first.
func Networks() []string { return containerservice.Networks() }

// Outbounds are the allowed values of Cluster.Outbound, the default first.
func Outbounds() []string { return containerservice.Outbounds() }

// RealLatencies are near to what users of Azure see: about a minute from the
// request to a kubelet that starts.
func RealLatencies() Latencies {
	return Latencies{
		Read:     Distribution{Median: 60 * time.Millisecond, Spread: 0.4, Max: time.Second},
		Write:    Distribution{Median: 250 * time.Millisecond, Spread: 0.4, Max: 3 * time.Second},
		VMCreate: Distribution{Median: 28 * time.Second, Spread: 0.25, Min: 12 * time.Second, Max: 3 * time.Minute},
		VMFail:   Distribution{Median: 6 * time.Second, Spread: 0.3, Min: 2 * time.Second, Max: 30 * time.Second},
		Boot:     Distribution{Median: 22 * time.Second, Spread: 0.2, Min: 10 * time.Second, Max: 2 * time.Minute},
		VMDelete: Distribution{Median: 35 * time.Second, Spread: 0.3, Min: 10 * time.Second, Max: 3 * time.Minute},
		NIC:      Distribution{Median: 1500 * time.Millisecond, Spread: 0.3, Max: 10 * time.Second},
		Extend:   Distribution{Median: 15 * time.Second, Spread: 0.3, Min: 5 * time.Second, Max: 2 * time.Minute},

		PriceSheet: Distribution{Median: 30 * time.Second, Spread: 0.3, Min: 10 * time.Second, Max: 3 * time.Minute},
	}
}

// Fixed names of the simulated subscription.
const (
	defaultTenant       = "72f988bf-0000-4000-8000-000000000001"
	defaultSubscription = "0b1f6471-0000-4000-8000-000000000002"
	clusterSuffix       = "10000001" // the eight digits that AKS puts into the names of the cluster's network
)

// withDefaults fills what is empty and says what is wrong.
func (c Config) withDefaults(cat *skutable.Table) (Config, error) {
	c.TenantID = cmp.Or(c.TenantID, defaultTenant)
	c.SubscriptionID = cmp.Or(c.SubscriptionID, defaultSubscription)
	c.Region = cmp.Or(c.Region, "eastus")
	c.Account.State = cmp.Or(c.Account.State, "Enabled")
	if !slices.Contains(cat.Regions(), c.Region) {
		return c, fmt.Errorf("armsim: region %q is not in the catalogue; known are %s", c.Region, strings.Join(cat.Regions(), ", "))
	}
	c.Cluster.Name = cmp.Or(c.Cluster.Name, "nap")
	c.Cluster.ResourceGroup = cmp.Or(c.Cluster.ResourceGroup, "nap")
	c.Cluster.NodeResourceGroup = cmp.Or(c.Cluster.NodeResourceGroup,
		fmt.Sprintf("MC_%s_%s_%s", c.Cluster.ResourceGroup, c.Cluster.Name, c.Region))
	c.Cluster.KubernetesVersion = cmp.Or(c.Cluster.KubernetesVersion, "1.35.1")
	c.Cluster.Subnet = cmp.Or(c.Cluster.Subnet, netip.MustParsePrefix("10.224.0.0/16"))
	c.Cluster.Endpoint = cmp.Or(c.Cluster.Endpoint, fmt.Sprintf("%s-dns-%s.hcp.%s.azmk8s.io", c.Cluster.Name, clusterSuffix, c.Region))
	c.Cluster.Network = cmp.Or(c.Cluster.Network, Networks()[0])
	c.Cluster.Outbound = cmp.Or(c.Cluster.Outbound, Outbounds()[0])
	if !slices.Contains(Networks(), c.Cluster.Network) {
		return c, fmt.Errorf("armsim: network %q: allowed are %s", c.Cluster.Network, strings.Join(Networks(), ", "))
	}
	if !slices.Contains(Outbounds(), c.Cluster.Outbound) {
		return c, fmt.Errorf("armsim: outbound %q: allowed are %s", c.Cluster.Outbound, strings.Join(Outbounds(), ", "))
	}
	if c.Cluster.AgentPools == nil {
		c.Cluster.AgentPools = []string{"system"}
	}
	if c.Cluster.MachinesPools == nil {
		c.Cluster.MachinesPools = []string{"machines"}
	}
	if c.TimeScale < 0 {
		return c, fmt.Errorf("armsim: time scale %v is negative; 1 is real time, 20 is twenty times faster", c.TimeScale)
	}
	c.TimeScale = cmp.Or(c.TimeScale, 1)
	c.QuotaDefault = cmp.Or(c.QuotaDefault, 100_000)
	c.PollEvery = cmp.Or(c.PollEvery, 3*time.Second)
	c.UsageLag = cmp.Or(c.UsageLag, time.Minute)
	c.GraphLag = cmp.Or(c.GraphLag, 10*time.Second)
	c.DefaultCapacity = cmp.Or(c.DefaultCapacity, 5000)
	c.SpotNotice = cmp.Or(c.SpotNotice, 30*time.Second)
	c.Latency = cmp.Or(c.Latency, RealLatencies())
	if c.ImageVersions == nil {
		c.ImageVersions = compute.DefaultImageVersions()
	}
	if c.Limits == nil {
		c.Limits = PublishedLimits()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// clusterID is the resource ID of the managed cluster.
func (c Config) clusterID() string {
	return "/subscriptions/" + c.SubscriptionID + "/resourceGroups/" + c.Cluster.ResourceGroup +
		"/providers/Microsoft.ContainerService/managedClusters/" + c.Cluster.Name
}

// The parts of the configuration, as the providers take them.

func (c Config) compute(foreign func(token string) bool) compute.Config {
	return compute.Config{
		Supply: compute.Supply{
			Quota: c.Quota, QuotaDefault: c.QuotaDefault, UsageLag: c.UsageLag, Capacity: c.Capacity, DefaultCapacity: c.DefaultCapacity,
		},
		Latency: c.Latency, Sizes: c.Sizes, Restrictions: c.Restrictions, SpotLifetime: c.SpotLifetime, SpotNotice: c.SpotNotice,
		ReportsProvisioning: c.ReportsProvisioning, ImageVersions: c.ImageVersions,
		Foreign: compute.ForeignTenant{Subscriptions: c.ForeignSubscriptions, Signed: foreign},
	}
}

// roles are all role assignments of a subscription, by its path, with these principals
// and this resource group of nodes.
func (a *Account) roles(path string, principals []Principal, nodeResourceGroup string) []authorization.Assignment {
	out := []authorization.Assignment{{
		PrincipalID: containerservice.PrincipalID, Scope: path + "/resourceGroups/" + nodeResourceGroup,
		Role: authorization.RoleContributor, Actions: []string{"*"},
	}}
	for _, p := range principals {
		actions := p.Actions
		if actions == nil {
			actions = []string{"*"}
		}
		out = append(out, authorization.Assignment{PrincipalID: p.ClientID, Scope: path, Role: p.ClientID, Actions: actions})
	}
	return append(out, a.Assignments...)
}

// tenantOf is who there is, with what clients have made.
func tenantOf(c *Config, made *managedidentity.Provider) authorization.Tenant {
	return authorization.Tenant{Open: len(c.Principals) == 0, Has: func(objectID string) bool {
		return strings.EqualFold(objectID, containerservice.PrincipalID) || made.ByPrincipal(objectID) != nil ||
			slices.ContainsFunc(c.Principals, func(p Principal) bool { return strings.EqualFold(p.ClientID, objectID) })
	}}
}

func (c Config) network() network.Config {
	return network.Config{
		NodeResourceGroup: c.Cluster.NodeResourceGroup, Subnet: c.Cluster.Subnet, Suffix: clusterSuffix, Latency: c.Latency.NIC,
		OutboundType: containerservice.OutboundType(c.Cluster.Outbound),
	}
}

func (c Config) cluster() containerservice.Cluster {
	return containerservice.Cluster{
		ID: c.clusterID(), Name: c.Cluster.Name, ResourceGroup: c.Cluster.ResourceGroup, NodeResourceGroup: c.Cluster.NodeResourceGroup,
		KubernetesVersion: c.Cluster.KubernetesVersion, Endpoint: c.Cluster.Endpoint,
		AgentPools: c.Cluster.AgentPools, MachinesPools: c.Cluster.MachinesPools,
		Network: c.Cluster.Network, Outbound: c.Cluster.Outbound, Properties: c.Cluster.Properties, Absent: c.Cluster.Absent,
		OpenNodePools: c.Cluster.OpenNodePools, Suffix: clusterSuffix,
	}
}

func (c Config) options(cat *skutable.Table) arm.Options {
	return arm.Options{
		ID: c.SubscriptionID, TenantID: c.TenantID, Region: c.Region, SKUTable: cat, Features: c.Account.Features,
		Seed: c.Seed, TimeScale: c.TimeScale, PollEvery: c.PollEvery,
	}
}
