// Package azure is nap's hands: it knows what Azure sells, buys it, and gives it
// back. It speaks the official SDK to whatever endpoints the configuration names,
// and knows nothing of Kubernetes objects or of planning.
//
// # Start here
//
//	c, err := config.Load(os.LookupEnv, os.ReadFile)
//	c.ClusterCA = caOfTheKubeconfig
//	c, err = azure.Discover(ctx, c, deps)       // what the cluster tells of itself
//	provider, err := azure.New(ctx, c, azure.Deps{Log: logger})
//	provider.OnFailed(func(ctx, claim, failure) (launch.Fate, error) { delete the NodeClaim })
//	go provider.Run(ctx)                        // refreshes and watches; on the leader only
//	built := provider.Catalog(class)            // what may be bought, and at what price
//	machine, err := provider.Launch(ctx, order) // buy
//
// Karpenter's CloudProvider interface on top of it, which converts Kubernetes
// objects, is package controller/cloudprovider.
//
// # Rooms
//
//	config          configuration, clouds, credentials
//	nodeclass       an AKSNodeClass as a value
//	instancetype    sizes -> instance types with labels, capacity, overhead, offerings
//	price           retail prices
//	quota           subscription limits less what is on its way
//	unavailable     the error map: what was refused, and until when
//	placementscore  how likely Azure holds spot machines to be placed
//	ratelimit       Azure's request limits, and what is done while Azure is out
//	image           node images
//	network         subnet, load balancer pools, security group
//	maintenance     when machines may be replaced for a newer image
//	managedcluster  what the cluster tells of itself
//	bootresult      what a node says of its provisioning: exit codes and their meaning
//	launch          one node specification, fallback, watching; launchers: launch/vm, launch/aksmachine
//	providertest    tests of all of it against the simulated Azure
//
// Where a new kind of refusal belongs: unavailable. A new way of making machines:
// a launch.Launcher. A new label of nodes: instancetype, and [Provider.nodeLabels] if
// no pod is scheduled by it.
package azure

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/launch/aksmachine"
	"github.com/nodeautoprovision/nap/internal/azure/launch/vm"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/placementscore"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/azure/ratelimit"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

const (
	// maxRetries is how often the SDK repeats a request that met a passing fault;
	// with its doubling pauses that is about a minute.
	maxRetries = 6
	// tryTimeout ends a request that hangs. The list of sizes is megabytes long.
	tryTimeout = 2 * time.Minute
)

// Deps are what the provider takes from its surroundings. The zero value is the
// real world.
type Deps struct {
	// Credential signs requests; nil means DefaultAzureCredential.
	Credential azcore.TokenCredential
	// Transport sends requests to Azure; nil means HTTP. Prices are read through
	// it too.
	Transport policy.Transporter
	// PricesFile is what the subscription pays instead of retail prices, see
	// price.Terms; empty means retail prices.
	PricesFile string
	// Now reads the clock; nil means time.Now.
	Now func() time.Time
	// Token is what a machine that is launched now joins with, or why it must not be
	// launched; nil means the one of the configuration.
	Token func(context.Context) (jointoken.Token, error)
	// Metrics counts launches; nil means that they are not read.
	Metrics prometheus.Registerer
	// MayWrite is asked right before each request that changes something, which is not
	// sent when it returns an error; nil means that every one is.
	MayWrite func() error
	// Ask asks Azure by a function, and again while it does not answer; nil means once.
	Ask func(ctx context.Context, by func(context.Context) error) error
	// Log takes what background work has to say; nil means that it is not kept.
	Log *slog.Logger
	// requests takes a line for each request; nil means that none is written.
	requests *requestLog
}

// http sends what is not for Azure's Resource Manager.
func (d Deps) http() policy.Transporter {
	next := d.Transport
	if next == nil {
		next = http.DefaultClient
	}
	if d.requests != nil {
		return loggedTransport{*d.requests, next}
	}
	return next
}

// auxiliary brings the token that images of another tenant take; nil where there is
// none to bring.
func auxiliary(c *config.Config, deps Deps) policy.Policy {
	if c.SIGTokenServer == "" {
		return nil
	}
	return image.NewAuxiliary(c.SIGTokenServer, c.Cloud.Azure().Services[cloud.ResourceManager].Audience, deps.http(), deps.Now)
}

// Provider is Azure for one cluster. It is safe for concurrent use.
type Provider struct {
	config   config.Config
	breaker  *ratelimit.CircuitBreaker
	market   *market
	images   *image.Resolver
	network  *network.Resolver
	scores   *spotRanking
	launcher launch.Launcher
	boots    *launch.Boots
	buyer    *launch.Buyer
	specs    *specifier
	orphans  *collector
	windows  *windowReader
	diskSet  *diskSetReader
	drift    *driftReader
	cluster  *clusterWatch
}

// connection is how Azure is reached: with which options, and what notices that it
// is out.
type connection struct {
	options *arm.ClientOptions
	breaker *ratelimit.CircuitBreaker
}

// connect signs in, and fills in what of deps is not given.
func connect(c *config.Config, deps *Deps) (connection, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	options := azcore.ClientOptions{Cloud: c.Cloud.Azure(), Transport: deps.Transport}
	options.Telemetry.ApplicationID = "nap"
	options.Retry.StatusCodes = []int{
		http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}
	options.Retry.MaxRetries = maxRetries
	var logged []policy.Policy // nothing, where no requests are logged
	if c.LogRequests {
		deps.requests = &requestLog{log: deps.Log, now: deps.Now}
		logged = []policy.Policy{deps.requests}
	}
	options.PerRetryPolicies = logged
	if deps.Credential == nil {
		credential, err := c.Cloud.Credential(options)
		if err != nil {
			return connection{}, err
		}
		deps.Credential = credential
	}
	deps.Credential = config.ShortLived(deps.Credential, deps.Now)
	breaker := ratelimit.NewCircuitBreaker(deps.Now)
	options.PerRetryPolicies = []policy.Policy{ratelimit.New(ratelimit.Published(), breaker, tryTimeout, deps.Now)}
	if deps.MayWrite != nil { // behind the queue of requests, in which time passes
		options.PerRetryPolicies = append(options.PerRetryPolicies, ratelimit.Guard(deps.MayWrite))
	}
	options.PerRetryPolicies = append(options.PerRetryPolicies, logged...)
	// A subscription with an AKS cluster has every provider registered that is
	// needed here, and nap's role may not register any.
	return connection{&arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true}, breaker}, nil
}

// New connects to Azure and reads the region's sizes, quotas and prices. Sizes
// are a must; without quotas every purchase is tried, and without retail prices
// the embedded table holds.
func New(ctx context.Context, c config.Config, deps Deps) (*Provider, error) {
	conn, err := connect(&c, &deps)
	if err != nil {
		return nil, err
	}
	armOptions := conn.options
	cl, err := newClients(&c, deps.Credential, armOptions, auxiliary(&c, deps))
	if err != nil {
		return nil, err
	}
	cl.vms.Blobs = deps.http()
	p := &Provider{config: c, breaker: conn.breaker}
	if p.market, err = newMarket(&p.config, cl, deps); err != nil {
		return nil, err
	}
	p.images = image.NewResolver(cl.images, c.Location, config.UpgradesBelieved(&c), deps.Now)
	if deps.Metrics != nil {
		if err := p.images.Count(deps.Metrics); err != nil {
			return nil, err
		}
	}
	p.network = network.NewResolver(cl.network, c.NodeResourceGroup, c.VNETSubnetID, deps.Now)
	p.specs = &specifier{config: &p.config, network: p.network, token: deps.Token}
	p.scores = &spotRanking{location: c.Location, log: deps.Log}
	if c.PlacementScores {
		if p.scores.scorer, err = placementscore.NewScorer(c.SubscriptionID, c.Location, deps.Credential, armOptions, deps.Now); err != nil {
			return nil, err
		}
	}
	if c.SIGSubscriptionID != "" {
		shared, err := image.NewShared(c.SubscriptionID, c.Location, c.SIGSubscriptionID, deps.Credential, armOptions)
		if err != nil {
			return nil, err
		}
		p.images.UseShared(shared)
	}
	if err := p.connect(cl, deps); err != nil {
		return nil, err
	}
	if deps.Ask != nil {
		return p, deps.Ask(ctx, p.market.load)
	}
	return p, p.market.load(ctx)
}

// connect makes what launches, watches and collects machines.
func (p *Provider) connect(cl clients, deps Deps) error {
	c, m := &p.config, p.market
	var aks *aksmachine.Launcher
	p.boots = launch.NewBoots()
	p.launcher = vm.New(cl.vms, c, p.network, p.boots)
	if c.HasAKSMachines() {
		aks = aksmachine.New(cl.aks, c)
		p.launcher = launch.NewMixed(p.launcher, aks, c.StartsAKSMachines())
	}
	metrics, err := launch.NewMetrics(deps.Metrics, c.Location, c.StartsAKSMachines())
	if err != nil {
		return err
	}
	watcher := launch.NewWatcher(p.launcher, m.catalog, m.offerings, m.quota,
		launch.Reporting{Metrics: metrics, Boots: p.boots, Log: deps.Log})
	p.buyer = launch.NewBuyer(p.launcher, watcher, m.catalog, m.offerings, m.quota)
	machines := newMachineList(p.launcher, deps.Now, func() func([]launch.Machine) { return counting(m.prices) })
	p.orphans = &collector{
		config: c, now: deps.Now, log: deps.Log, vms: cl.vms, aks: aks,
		launcher: p.launcher, watcher: watcher, list: machines, remove: p.Delete,
		remover: aksmachine.NewRemover(cl.vms.Machines, cl.pools, c),
	}
	p.windows = &windowReader{config: c, client: cl.maintenance, now: deps.Now, seen: map[string]seenWindow{}}
	p.diskSet = &diskSetReader{id: c.DiskEncryptionSetID, client: cl.diskSets, now: deps.Now}
	p.drift = &driftReader{config: c, list: machines}
	p.cluster = newClusterWatch(c, cl.clusters, deps.Log, newPoolWatch(c, cl.aks.Machines, deps.Log, deps.Now))
	if config.AwaitsMachineAPI(c) {
		p.cluster.awaited = cl.aks.Machines
	}
	return nil
}

// OnFailed sets what is called when a machine fails after Launch has returned it.
// The function should delete the NodeClaim, unless its machine is a node by then, and says
// what is to become of the machine; an error makes it be called again.
// Call it before Run.
func (p *Provider) OnFailed(f launch.FailedFunc) { p.buyer.Watcher().OnFailed(f) }

// Run refreshes what changes and follows machines until they run, until the
// context ends. Run it where machines are launched: on the leader. Its error says
// that the cluster is not any more what the configuration was completed for: the
// process must start again.
func (p *Provider) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { p.buyer.Watcher().Run(ctx); return nil })
	group.Go(func() error { p.launcher.Run(ctx); return nil })
	group.Go(func() error { return p.cluster.run(ctx) })
	p.market.run(ctx, group)
	return group.Wait()
}

// Config is what the provider was made with.
func (p *Provider) Config() *config.Config { return &p.config }

// Catalog is what may be bought for a node class, as of now. It is immutable
// and the same value until something changes.
func (p *Provider) Catalog(class *nodeclass.NodeClass) *instancetype.Built {
	return p.market.catalog.For(class)
}

// Market changes whenever a plan may come out differently although nothing has
// been bought or refused: with prices, and with the subscription's limits.
func (p *Provider) Market() uint64 { return p.market.prices.Revision() + p.market.quota.Refreshes() }

// Evicted records that Azure has taken a spot machine back.
func (p *Provider) Evicted(size, zone string) { p.market.offerings.MarkInterrupted(size, zone) }

// Supply is what bounds purchases beside offerings.
func (p *Provider) Supply() *Supply { return &Supply{p.market, p.orphans.list} }

// MarketFacts are what is known of what can be bought, for people.
type MarketFacts struct {
	// Quotas are the limits of the subscription in detail.
	Quotas []quota.Line
	// Prices says where the prices come from, Terms what the subscription pays instead of
	// retail prices, nil for none. SpotEstimated says that no retail prices are known, so
	// that those of spot machines are estimates.
	Prices        string
	SpotEstimated bool
	Terms         *price.Terms
}

// MarketFacts says what is known of what can be bought.
func (p *Provider) MarketFacts() MarketFacts {
	prices := p.market.prices
	return MarketFacts{
		Quotas: p.market.quota.Lines(), Prices: prices.Source(), SpotEstimated: prices.SpotEstimated(), Terms: prices.Terms(),
	}
}

// RefreshQuota asks Azure for the usages now instead of at the next turn.
func (p *Provider) RefreshQuota(ctx context.Context) error {
	return p.market.quota.Refresh(ctx, p.market.usage, p.config.Location)
}

// Outage says which of Azure's APIs do not answer, or "". While there is one,
// Launch refuses, now and then excepted to find out whether it is over.
func (p *Provider) Outage() string {
	var parts []string
	for _, o := range p.breaker.Outages() {
		parts = append(parts, fmt.Sprintf("%s has failed since %s (%s)", o.API, o.Since.UTC().Format(time.RFC3339), o.Detail))
	}
	if len(parts) == 0 {
		return ""
	}
	return "Azure does not answer, no machine is launched: " + strings.Join(parts, "; ")
}

// Unavailable is the memory of what Azure has refused, to carry over a restart.
func (p *Provider) Unavailable() *unavailable.Offerings { return p.market.offerings }
