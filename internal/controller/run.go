package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	opcontroller "github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/serrors"
	"github.com/go-logr/logr"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/controller/bootstraptoken"
	"github.com/nodeautoprovision/nap/internal/controller/donotdisrupt"
	"github.com/nodeautoprovision/nap/internal/controller/errorlog"
	"github.com/nodeautoprovision/nap/internal/controller/garbagecollection"
	"github.com/nodeautoprovision/nap/internal/controller/inplaceupdate"
	"github.com/nodeautoprovision/nap/internal/controller/interruption"
	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/controller/leadership"
	"github.com/nodeautoprovision/nap/internal/controller/liveness"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/mode"
	"github.com/nodeautoprovision/nap/internal/controller/nodeclass"
	"github.com/nodeautoprovision/nap/internal/controller/outage"
	"github.com/nodeautoprovision/nap/internal/controller/preflight"
	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/controller/registration"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
)

// Cloud is the cloud as the controller uses it.
type Cloud struct {
	Provider cloudprovider.CloudProvider
	// Catalogs say what NodePools can buy, for engine nap.
	Catalogs fleet.Catalogs
	// Classes answers what AKSNodeClasses mean.
	Classes nodeclass.Finder
	// Run keeps the cloud's data fresh and follows its machines, on the leader
	// alone, until the context ends.
	Run func(context.Context) error
	// Record gives the cloud somewhere to publish events.
	Record func(events.Recorder)
	// Dataplane is the network dataplane of the cluster, such as cilium.
	Dataplane string
	// Outage says in one sentence what of the cloud is out, or "".
	Outage func() string
	// Paused is why the cluster does not let nap buy; the zero value while it does.
	Paused func() outage.Finding
	// mode says in which mode the cluster is; set before anything runs.
	mode *mode.Keeper
	// Tokens keeps the bootstrap tokens of machines; nil where they need none.
	Tokens *bootstraptoken.Keeper
	// Market changes whenever prices or limits have changed, so that it is worth
	// planning again.
	Market func() uint64
	// Maintenance reports whether the cluster's maintenance window is open, and
	// until when that holds, zero for ever.
	Maintenance func(ctx context.Context, now time.Time) (open bool, until time.Time, err error)
	// WatchGone makes the cloud tell when the machine of a NodeClaim went, by Azure's word
	// where it has one.
	WatchGone func(told func(claim string, at time.Time))
	// WatchUnsold makes the cloud tell of NodeClaims that end without a machine because
	// nothing is left to buy for them, or nothing at a price that their machine may have.
	WatchUnsold func(told func(*karpv1.NodeClaim))
	// Evicted tells the cloud of a spot machine that is taken back.
	Evicted func(size, zone string)
	// InPlace changes what may change of running machines.
	InPlace inplaceupdate.Updater
	// Boots knows of machines that are not nodes yet.
	Boots registration.Boots
	// Unavailable is what the cloud has refused lately.
	Unavailable snapshot.Source
	// Prices are the retail prices that were read last; nil where there are none to remember.
	Prices snapshot.Source
	// Forget forgets what was refused of VM sizes or families, or of all (*), and asks for
	// the quota. It returns how many refusals that were.
	Forget func(ctx context.Context, names []string) int
	// Told is what the cloud knows of what can be bought.
	Told func() snapshot.Market
	// Surroundings say whether nap can work in the cluster.
	Surroundings Surroundings
	// Instances and Interfaces delete machines and network interfaces that no
	// NodeClaim has.
	Instances, Interfaces garbagecollection.Collector
}

// Config is what Run needs.
type Config struct {
	Options Options
	// REST reaches the API server.
	REST *rest.Config
	// Logger takes every line; V(1) and up are for debugging.
	Logger logr.Logger
	Clock  clock.Clock
	// Patience is for how long an API server that does not answer at the start is asked
	// again; 0 for once. With any patience, a cloud that does not answer is asked until it
	// does.
	Patience time.Duration
	// HeapGrowth is by how many percent the heap may grow until the garbage collector runs;
	// 0 leaves that as it is.
	HeapGrowth int
	// Connect connects to the cloud. It is called after the cluster has been found fit and
	// before anything runs.
	Connect func(ctx context.Context, start Start) (NewCloud, error)
}

// NewCloud builds a cloud on the manager's cached client.
type NewCloud func(kube client.Client) (Cloud, error)

// shutdownTimeout is how long running work may take to stop. It is below the 30
// seconds that Kubernetes grants a pod.
const shutdownTimeout = 20 * time.Second

// Run runs the controller until the context ends, and then returns nil once
// everything has stopped and the lease is released. Any error before the start
// is one sentence for the user; nothing has been changed then.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Options.Validate(); err != nil {
		return err
	}
	if err := v1beta1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("registering AKSNodeClass: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("registering Snapshot and NodeAutoProvisioning: %w", err)
	}
	if err := check(ctx, cfg); err != nil {
		return err
	}
	tuneMemory(cfg.HeapGrowth, cfg.Options.MemoryLimit)
	var lease *leadership.Lease
	if !cfg.Options.DisableLeaderElection {
		lease = leadership.NewLease(cfg.Options.Election)
	}
	// Karpenter hides key/value pairs in its errors; this logger prints them.
	failures := errorlog.New(cfg.Clock)
	logger := serrors.NewLogger(logr.New(doubtfulSink{quietSink{failures.Sink(lateValues{LogSink: cfg.Logger.GetSink()})}, lease.Held}))
	ctrllog.SetLogger(logger)
	klog.SetLogger(logger)
	ctx = karpenter.WithOptions(ctx, cfg.Options.karpenter(), logger)

	if err := metrics.RegisterClient(ctrlmetrics.Registry); err != nil {
		return err
	}
	newCloud, err := connect(ctx, cfg, logger, lease.Held)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to stop while it waited for the cloud
	}
	if err != nil {
		return err
	}
	mgr, err := karpenter.NewManager(ctx, karpenter.ManagerConfig{
		REST:                   cfg.REST,
		Logger:                 logger,
		MetricsBindAddress:     cfg.Options.MetricsBindAddress,
		HealthProbeBindAddress: cfg.Options.HealthProbeBindAddress,
		SecureMetrics:          cfg.Options.MetricsSecure,
		CertDir:                cfg.Options.MetricsCertDir,
		DetailedMetrics:        cfg.Options.DetailedMetrics,
		ShutdownTimeout:        shutdownTimeout,
		Election:               cfg.Options.Election,
		Lease:                  lease,
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(failures); err != nil {
		return fmt.Errorf("adding the count of errors: %w", err)
	}
	cloud, err := newCloud(mgr.GetClient())
	if err != nil {
		return err
	}
	if err := register(ctx, mgr, cfg, cloud); err != nil {
		return err
	}
	logger.Info("starting", "engine", string(cfg.Options.Engine), "server", cfg.REST.Host)
	err = mgr.Start(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the controller stopped: %w", err)
	}
	logger.Info("stopped")
	return nil
}

// register adds everything that runs to the manager.
func register(ctx context.Context, mgr manager.Manager, cfg Config, cloud Cloud) error {
	checks, err := newChecks(mgr, cfg, &cloud)
	if err != nil {
		return err
	}
	barrier, err := addBarrier(mgr, cfg)
	if err != nil {
		return err
	}
	controllers, err := beginTogether(mgr)
	if err != nil {
		return err
	}
	past := newPurchases(cfg.Clock)
	assembly, err := newAssembly(ctx, mgr, barrier.behind(controllers), cfg, &cloud, checks.Report, past.registrations)
	if err != nil {
		return err
	}
	if err := assembly.Register(ctx, karpenter.Scope{
		Deciders: karpenter.Deciders{
			Provisioning: cfg.Options.Engine == EngineKarpenter,
			Disruption:   cfg.Options.Engine == EngineKarpenter,
			RepairAlone:  cfg.Options.Engine == EngineNap && !cfg.Options.LegacyNodeRepair,
		},
		DetailedMetrics: cfg.Options.DetailedMetrics,
	}); err != nil {
		return err
	}
	locks := liveness.Probe(cfg.Clock, "reading Karpenter's mirror of the cluster", assembly.Cluster.Touch)
	if err := mgr.AddHealthzCheck("mirror", locks); err != nil {
		return fmt.Errorf("adding the health check of the mirror: %w", err)
	}
	collector := &snapshot.Collector{
		Engine: string(cfg.Options.Engine), Gates: gatesOn(cfg.Options.FeatureGates), Clock: cfg.Clock, Market: cloud.Told, Health: cloud.health,
		DefaultSpread: cfg.Options.defaultSpread(), ResourceClaims: !cfg.Options.IgnoreDRARequests,
		Prerequisites: func() string { report := checks.Report(); return report.Line() },
	}
	memory := map[string]snapshot.Source{snapshot.MemoryRefusals: cloud.Unavailable}
	if cloud.Prices != nil {
		memory[snapshot.MemoryPrices] = cloud.Prices
	}
	publisher := &snapshot.Publisher{
		Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Memory: memory, Collect: collector.Collect, Clock: cfg.Clock,
		Forget: cloud.Forget,
	}
	if cfg.Options.Engine == EngineNap {
		memory[snapshot.MemoryPurchases] = past.store()
		err := registerNap(ctx, mgr, cfg, napParts{assembly, cloud, past, collector, controllers, barrier, publisher.Restored})
		if err != nil {
			return err
		}
	}
	if err := tellOfProcess(mgr); err != nil {
		return err
	}
	boots, err := metrics.NewBoots(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		opcontroller.Controller
	}{
		{"node.eviction", interruption.New(mgr.GetClient(), assembly.Recorder, cloud.Evicted)},
		{"nodeclaim.boot", registration.New(mgr.GetClient(), cfg.Clock, cloud.Boots, registration.Reporting{
			Recorder: assembly.Recorder, Metrics: boots, Failed: assembly.RegistrationFailed,
		})},
		{"pod.donotdisrupt", donotdisrupt.New(mgr.GetClient(), cfg.Clock, assembly.Recorder)},
		{"nodeclaim.inplace", inplaceupdate.New(mgr.GetClient(), cloud.InPlace)},
		{"nodeclass.status", nodeclass.NewStatus(mgr.GetClient(), cfg.Clock, cloud.Classes)},
		{"nodeclass.hash", nodeclass.NewHash(mgr.GetClient())},
		{"nodeclass.termination", nodeclass.NewTermination(mgr.GetClient(), assembly.Recorder)},
	} {
		if err := c.Register(ctx, controllers); err != nil {
			return fmt.Errorf("registering controller %s: %w", c.name, err)
		}
	}
	if err := registerWatches(mgr, cfg, assembly, &cloud, checks); err != nil {
		return err
	}
	cloud.Record(assembly.Recorder)
	// A plain function is a runnable that waits for the lease.
	if err := mgr.Add(manager.RunnableFunc(cloud.Run)); err != nil {
		return fmt.Errorf("adding the cloud's own work: %w", err)
	}
	if cloud.Tokens != nil {
		if err := mgr.Add(cloud.Tokens); err != nil {
			return fmt.Errorf("adding the keeper of bootstrap tokens: %w", err)
		}
	}
	if err := mgr.Add(publisher); err != nil {
		return fmt.Errorf("adding the publisher of the snapshot: %w", err)
	}
	return addCollectors(barrier.behind(mgr), cfg, cloud)
}

// addBarrier adds what holds other controllers back until the first plan is made. Engine
// karpenter has none: its own loops need the other controllers.
func addBarrier(mgr manager.Manager, cfg Config) (*startBarrier, error) {
	if cfg.Options.Engine != EngineNap {
		return nil, nil
	}
	barrier := newStartBarrier(cfg.Clock)
	if err := mgr.Add(barrier); err != nil {
		return nil, fmt.Errorf("adding the barrier of the start: %w", err)
	}
	return barrier, nil
}

// addCollectors adds the collectors of garbage.
func addCollectors(mgr manager.Manager, cfg Config, cloud Cloud) error {
	for _, loop := range []*garbagecollection.Loop{
		{Kind: "virtual machines", Every: garbagecollection.EveryInstance, Collect: cloud.Instances, Clock: cfg.Clock},
		{Kind: "network interfaces", Every: garbagecollection.EveryInterface, Collect: cloud.Interfaces, Clock: cfg.Clock},
	} {
		if err := mgr.Add(loop); err != nil {
			return fmt.Errorf("adding the collector of %s: %w", loop.Kind, err)
		}
	}
	return nil
}

// watches are the reasons for which nothing is launched, by the condition that tells.
func watches(cloud *Cloud) []outage.Watch {
	return []outage.Watch{
		{
			Condition: v1beta1.ConditionAzureAvailable, Resumed: "Azure answers again; machines are launched",
			Finding: func() outage.Finding {
				if text := cloud.Outage(); text != "" {
					return outage.Finding{Reason: v1beta1.ReasonAzureUnavailable, Message: text}
				}
				return outage.Finding{}
			},
		},
		{
			Condition: v1beta1.ConditionLaunchesAllowed, Resumed: "the cluster lets nap buy again; machines are launched",
			Finding: cloud.Paused, NodePools: true,
		},
		{
			Condition: v1beta1.ConditionBootstrapTokenReady, Resumed: "machines can join again; they are launched",
			Finding: cloud.tokens,
		},
	}
}

// health says what of Azure is out, and why nothing is bought, both empty while all is
// well.
func (c *Cloud) health() (azure, buying string) {
	return c.Outage(), c.notBuying()
}

// tokens is why no machine could join; the zero value while they can.
func (c *Cloud) tokens() outage.Finding {
	if c.Tokens != nil {
		if unusable := c.Tokens.Finding(); unusable != nil {
			return outage.Finding{Reason: unusable.Reason, Message: unusable.Message}
		}
	}
	return outage.Finding{}
}

// market changes whenever planning again may be worth while: with the cloud's own, and
// when buying begins or ends to be possible.
func (c *Cloud) market() uint64 {
	revision := 2 * c.Market()
	if c.mayBuy() {
		revision++
	}
	return revision
}

// mayBuy reports whether a machine that is bought now would be launched, and whether nodes
// may be removed voluntarily.
func (c *Cloud) mayBuy() bool { return c.notBuying() == "" }

// notBuying is why no machine that is bought now would be launched; empty while one would.
func (c *Cloud) notBuying() string {
	for _, f := range []outage.Finding{c.mode.Finding(), c.Paused(), c.tokens()} {
		if f != (outage.Finding{}) {
			return cmp.Or(f.Message, f.Reason)
		}
	}
	return ""
}

// answerWithin bounds every single question of the check.
const answerWithin = 10 * time.Second

// check makes sure that the cluster can be worked with.
func check(ctx context.Context, cfg Config) error {
	config := rest.CopyConfig(cfg.REST)
	config.Timeout = answerWithin
	config.QPS, config.Burst = float32(cfg.Options.KubeClientQPS), cfg.Options.KubeClientBurst
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("the connection to the API server is not usable: %w", err)
	}
	wants, err := wants(cfg.Options)
	if err != nil {
		return err
	}
	return preflight.Run(logr.NewContext(ctx, cfg.Logger), preflight.Cluster{
		Client: kube, Host: cfg.REST.Host, Patience: cfg.Patience, Clock: cfg.Clock,
	}, wants)
}

// wants is what a cluster must have for these options.
func wants(o Options) (preflight.Wants, error) {
	resources := []schema.GroupVersionResource{
		{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
		{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"},
		v1beta1.GroupVersion().WithResource("aksnodeclasses"),
		v1alpha1.GroupVersion().WithResource("nodeautoprovisionings"),
		v1alpha1.GroupVersion().WithResource("snapshots"),
		v1alpha1.GroupVersion().WithResource("snapshotshards"),
		v1alpha1.GroupVersion().WithResource("ledgerpages"),
	}
	var features []rbac.Feature
	switch o.BootstrapTokens {
	case bootstraptoken.Own:
		features = append(features, rbac.BootstrapTokens)
	case bootstraptoken.Cluster:
		features = append(features, rbac.ClusterBootstrapTokens)
	case bootstraptoken.Given, bootstraptoken.None:
	}
	if o.DefaultNodePools != v1alpha1.DefaultNodePoolsNone {
		features = append(features, rbac.DefaultNodePools)
	}
	if o.FeatureGates.NodeOverlay {
		features = append(features, rbac.NodeOverlay)
		resources = append(resources, schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha1", Resource: "nodeoverlays"})
	}
	if o.FeatureGates.CapacityBuffer {
		features = append(features, rbac.CapacityBuffer)
		resources = append(resources, schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers"})
	}
	if o.FeatureGates.PodDeletionCostManagement {
		features = append(features, rbac.PodDeletionCost)
	}
	if len(o.defaultSpread()) > 0 {
		features = append(features, rbac.SchedulerConfig)
	}
	var apis []preflight.API
	if !o.IgnoreDRARequests {
		features = append(features, rbac.DynamicResources)
		apis = append(apis, preflight.API{
			GroupVersion: resourcev1.SchemeGroupVersion, Wanted: "--ignore-dra-requests=false", Since: "Kubernetes 1.34",
		})
	}
	if !o.DisableLeaderElection {
		features = append(features, rbac.LeaderElection)
	}
	if o.MetricsSecure {
		features = append(features, rbac.SecureMetrics)
	}
	permissions, err := rbac.Required(o.LeaderElectionNamespace, features...)
	if err != nil {
		return preflight.Wants{}, err
	}
	return preflight.Wants{
		Resources:   resources,
		APIs:        apis,
		Permissions: permissions,
		InstallCRDs: `"nap enable" or the chart nap-crd where nap comes from its charts, ` +
			`else "nap controller manifests --definitions | kubectl apply --server-side -f -"`,
		InstallRoles: `"nap enable" or "helm upgrade" where a chart made them, else "nap controller manifests | ` +
			`kubectl apply --server-side -f -", with --namespace and --service-account, or --user, of these credentials`,
	}, nil
}

// tuneMemory makes the garbage collector run whenever the heap has grown by so many percent,
// and work harder near the container's limit instead of dying at it.
func tuneMemory(heapGrowth int, limit int64) {
	if heapGrowth > 0 {
		debug.SetGCPercent(heapGrowth)
	}
	if limit > 0 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}
