package armsim

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

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
	Principals           []Principal // who may sign in; none: anyone, with every permission

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
	// means DefaultImageVersions.
	ImageVersions []string

	// StateFile, when set, is written after changes and read by New, so that a
	// server that was killed finds its machines again. The audit log goes to the
	// same path with the suffix .audit.
	StateFile string
	// AdminToken guards /admin/; empty switches /admin/ off.
	AdminToken string
	Logger     *slog.Logger // nil discards
}

// Cluster describes the AKS cluster of the subscription.
type Cluster struct {
	Name              string         // default "nap"
	ResourceGroup     string         // default "nap"
	NodeResourceGroup string         // default MC_<resource group>_<name>_<region>
	KubernetesVersion string         // default "1.35.1"
	Subnet            netip.Prefix   // of the nodes; default 10.224.0.0/16
	Endpoint          string         // host name of the API server; default is Azure's form
	AgentPools        []string       // default system
	Properties        map[string]any // laid over the properties of the managed cluster
}

// Principal is somebody who may sign in.
type Principal struct {
	ClientID string
	Secret   string   // for client secrets; empty: only federated tokens
	Actions  []string // permitted ARM actions, * matches any run of characters; nil permits all
}

// Latencies are how long things take in the real Azure, before TimeScale.
type Latencies struct {
	Read     Distribution // any GET
	Write    Distribution // any other call, to its first answer
	VMCreate Distribution // from PUT to the end of the operation
	VMFail   Distribution // from PUT to the end of an operation that finds no capacity
	Boot     Distribution // from the end of VMCreate to the kubelet's start
	VMDelete Distribution // from DELETE to the end of the operation
	NIC      Distribution // creation and deletion of a network interface
	Extend   Distribution // creation of an extension
}

// Distribution is a log-normal one cut off at both ends. The zero value is always 0.
type Distribution struct {
	Median time.Duration
	Spread float64 // standard deviation of the logarithm; 0.3 puts two thirds within a third of the median
	Min    time.Duration
	Max    time.Duration // 0: no upper bound
}

// at gives the value for a standard normal deviate z.
func (d Distribution) at(z float64) time.Duration {
	v := time.Duration(float64(d.Median) * math.Exp(d.Spread*z))
	if v < d.Min {
		return d.Min
	}
	if d.Max > 0 && v > d.Max {
		return d.Max
	}
	return v
}

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
	}
}

// CapacityRule limits the machines that match it, all of them together.
// Patterns are names with * for any run of characters; empty matches all.
type CapacityRule struct {
	Size     string // VM size, as Standard_D*s_v5
	Zone     string // "1", or "0" for machines without a zone
	Priority string // Regular or Spot
	Machines int    // how many may run at once
}

// Restriction takes sizes away from the subscription, as the SKU API shows them.
type Restriction struct {
	Size  string   // pattern
	Zones []string // restricted zones; empty: the whole region
}

// fixed resource names of the simulated cluster, as AKS gives them.
const (
	defaultTenant       = "72f988bf-0000-4000-8000-000000000001"
	defaultSubscription = "0b1f6471-0000-4000-8000-000000000002"
	clusterSuffix       = "10000001" // the eight digits that AKS puts into the names of the cluster's network
	vnetName            = "aks-vnet-" + clusterSuffix
	subnetName          = "aks-subnet"
	nsgName             = "aks-agentpool-" + clusterSuffix + "-nsg"
	routeTableName      = "aks-agentpool-" + clusterSuffix + "-routetable"
)

// withDefaults fills what is empty and says what is wrong.
func (c Config) withDefaults(cat *skutable.Catalogue) (Config, error) {
	setDefault(&c.TenantID, defaultTenant)
	setDefault(&c.SubscriptionID, defaultSubscription)
	setDefault(&c.Region, "eastus")
	if !slices.Contains(cat.Regions(), c.Region) {
		return c, fmt.Errorf("armsim: region %q is not in the catalogue; known are %s", c.Region, strings.Join(cat.Regions(), ", "))
	}
	setDefault(&c.Cluster.Name, "nap")
	setDefault(&c.Cluster.ResourceGroup, "nap")
	setDefault(&c.Cluster.NodeResourceGroup, fmt.Sprintf("MC_%s_%s_%s", c.Cluster.ResourceGroup, c.Cluster.Name, c.Region))
	setDefault(&c.Cluster.KubernetesVersion, "1.35.1")
	setDefault(&c.Cluster.Subnet, netip.MustParsePrefix("10.224.0.0/16"))
	setDefault(&c.Cluster.Endpoint, fmt.Sprintf("%s-dns-%s.hcp.%s.azmk8s.io", c.Cluster.Name, clusterSuffix, c.Region))
	if c.Cluster.AgentPools == nil {
		c.Cluster.AgentPools = []string{"system"}
	}
	if c.TimeScale < 0 {
		return c, fmt.Errorf("armsim: time scale %v is negative; 1 is real time, 20 is twenty times faster", c.TimeScale)
	}
	setDefault(&c.TimeScale, 1)
	setDefault(&c.QuotaDefault, 100_000)
	setDefault(&c.PollEvery, 3*time.Second)
	setDefault(&c.UsageLag, time.Minute)
	setDefault(&c.GraphLag, 10*time.Second)
	setDefault(&c.DefaultCapacity, 5000)
	setDefault(&c.SpotNotice, 30*time.Second)
	setDefault(&c.Latency, RealLatencies())
	if c.ImageVersions == nil {
		c.ImageVersions = DefaultImageVersions()
	}
	if c.Limits == nil {
		c.Limits = PublishedLimits()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// setDefault fills a value that was left at its zero.
func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// matches says whether a pattern with * wildcards matches the text, ignoring
// case as Azure's names do. The empty pattern matches all.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(strings.ToLower(pattern), "*")
	text = strings.ToLower(text)
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	if len(parts) == 1 {
		return text == parts[0]
	}
	text = text[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
