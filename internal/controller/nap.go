package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1alpha1 "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	nodepoolutils "sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/internal/controller/capacitybuffer"
	"github.com/nodeautoprovision/nap/internal/controller/disruption"
	"github.com/nodeautoprovision/nap/internal/controller/karpenter"
	"github.com/nodeautoprovision/nap/internal/controller/liveness"
	"github.com/nodeautoprovision/nap/internal/controller/metrics"
	"github.com/nodeautoprovision/nap/internal/controller/periodic"
	"github.com/nodeautoprovision/nap/internal/controller/provisioning"
	"github.com/nodeautoprovision/nap/internal/controller/purchasebackoff"
	"github.com/nodeautoprovision/nap/internal/controller/quarantine"
	"github.com/nodeautoprovision/nap/internal/controller/snapshot"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/kube"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// napParts are what nap's own loops are made of beside the manager.
type napParts struct {
	assembly  *karpenter.Assembly
	cloud     Cloud
	past      purchases
	collector *snapshot.Collector
	// controllers is the manager to which controllers are added.
	controllers manager.Manager
	// barrier holds other controllers back until the first plan is made.
	barrier *startBarrier
	// restored reports whether all is known that an earlier controller wrote down.
	restored func() bool
}

// registerNap adds nap's own loops to the manager: the one that buys and the one
// that removes nodes.
func registerNap(ctx context.Context, mgr manager.Manager, cfg Config, parts napParts) error {
	assembly, cloud, past, collector := parts.assembly, parts.cloud, parts.past, parts.collector
	numbers, err := metrics.NewProvisioning(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	m := newMirror(kube.Settings{
		Manages:             func(p *karpv1.NodePool) bool { return nodepoolutils.IsManaged(p, assembly.Cloud) },
		DeletionCostManaged: cfg.Options.FeatureGates.PodDeletionCostManagement,
		IgnoreClaims:        cfg.Options.IgnoreDRARequests,
		Spread:              kube.NewDefaultSpread(cfg.Options.defaultSpread()),
	})
	collector.Fleet, collector.Decisions, collector.Moves = m.Snapshot, &snapshot.Decisions{}, &snapshot.Moves{}
	collector.Catalogs = cloud.Catalogs
	offerings, err := registerPrices(m.Snapshot, collector.Catalogs)
	if err != nil {
		return err
	}
	held, buffered := newBuffers(mgr, cfg, assembly, m)
	loop := provisioning.NewLoop(provisioning.Config{
		Buffered:  buffered,
		Clients:   provisioning.Clients{Cached: mgr.GetClient(), Live: mgr.GetAPIReader()},
		Mirror:    m,
		Catalogs:  past.made.Sizes.Over(collector.Catalogs),
		NotBuying: cloud.notBuying,
		Solve:     surviving(mgr.GetLogger(), cfg, numbers).Solve,
		Planned:   offerings.Planned,
		Cluster:   assembly.Cluster,
		Recorder:  assembly.Recorder,
		Metrics:   numbers,
		Purchases: past.made, Registrations: past.registrations,
		Decided: collector.Decisions.Decided,
		Clock:   cfg.Clock,
		NewID:   rand.String,
		Settings: provisioning.Settings{
			Batch:             provisioning.BatchDurations{Idle: cfg.Options.BatchIdleDuration, Max: cfg.Options.BatchMaxDuration},
			Budget:            cfg.Options.PlanBudget,
			IgnorePreferences: cfg.Options.PreferencePolicy == options.PreferencePolicyIgnore,
			RelaxMinValues:    cfg.Options.MinValuesPolicy == options.MinValuesPolicyBestEffort,
			Share:             cfg.Options.NodeShare,
			Nominations:       nominationsPerSecond(cfg.Options),
			Limits:            purchasebackoff.Limits{Machines: cfg.Options.MaxNodes, PerMinute: cfg.Options.MaxNewNodesPerMinute},
		},
	})
	if cloud.WatchUnsold != nil {
		cloud.WatchUnsold(func(claim *karpv1.NodeClaim) {
			past.made.Unsold(claim.Name)
			numbers.PlannedAgain(claim.Labels[karpv1.NodePoolLabelKey])
		})
	}
	if err := loop.RegisterTriggers(parts.controllers); err != nil {
		return err
	}
	fed := &fedLoops{mirror: m, mgr: mgr, first: firstPlan{
		barrier: parts.barrier, fleet: m.Snapshot, plan: loop.PlanNow,
		known:  func() bool { return parts.restored() && past.registrations.Looked() && cloud.mode.Known() },
		manual: func() bool { return cloud.mode.Finding().Reason == v1alpha1.ReasonManual }, mayBuy: cloud.mayBuy,
	}}
	if held != nil {
		held.Plan(loop.BuffersChanged)
		fed.before, fed.loops = append(fed.before, held.Read), append(fed.loops, held)
	}
	err = addStatusLoops(ctx, mgr, purchasebackoff.Loop{
		Kube: mgr.GetClient(), Recorder: assembly.Recorder, Clock: cfg.Clock, Metrics: numbers,
		Purchases: past.made, Registrations: past.registrations, Snapshot: m.Snapshot,
		Known: func() bool { return parts.restored() && fed.fed.Load() },
	}, func() (map[string]string, bool) { return collector.Decisions.LimitsReached(m.Snapshot) })
	if err != nil {
		return err
	}
	back, err := newDisruption(mgr, cfg, assembly, cloud, m, past, collector.Moves)
	if err != nil {
		return err
	}
	if err := addMarketWatches(parts.controllers, cfg, cloud.market, loop.MarketChanged, back.MarketChanged); err != nil {
		return err
	}
	stuck := liveness.Check(cfg.Clock, liveness.Loop{Name: "provisioning", Activity: loop.Activity()},
		liveness.Loop{Name: "disruption", Activity: back.Activity()})
	if err := mgr.AddHealthzCheck("loops", stuck); err != nil {
		return fmt.Errorf("adding the health check of the loops: %w", err)
	}
	keeper, err := newLedger(mgr, cfg, cloud.Market, collector, m)
	if err != nil {
		return err
	}
	if cloud.WatchGone != nil {
		cloud.WatchGone(keeper.Gone)
	}
	fed.before = append(fed.before, back.Restore) // the first plan counts on what they buy
	fed.loops = append(fed.loops, loop, &heldRunnable{back, parts.barrier}, &heldRunnable{keeper, parts.barrier})
	if err := mgr.Add(fed); err != nil {
		return fmt.Errorf("adding the provisioning and disruption loops: %w", err)
	}
	return nil
}

// registerPrices registers the metrics that are made of prices when they are read.
func registerPrices(now func() *fleet.Snapshot, catalogs fleet.Catalogs) (*metrics.Offerings, error) {
	err := metrics.NewDollarLimits(ctrlmetrics.Registry, func(ctx context.Context) ([]fleet.DollarLimit, error) {
		return now().DollarLimits(ctx, catalogs)
	})
	if err != nil {
		return nil, err
	}
	return metrics.NewOfferings(ctrlmetrics.Registry, func(ctx context.Context, further []fleet.Place) ([]fleet.PricedOffering, error) {
		return now().Priced(ctx, catalogs, further)
	})
}

// newBuffers returns the loop that brings CapacityBuffers to the planner, and what is to
// be told of plans; both are nil without the feature gate.
func newBuffers(
	mgr manager.Manager, cfg Config, assembly *karpenter.Assembly, m mirror,
) (*capacitybuffer.Loop, func([]provisioning.BufferPlan)) {
	if !cfg.Options.FeatureGates.CapacityBuffer {
		return nil, nil
	}
	l := capacitybuffer.NewLoop(capacitybuffer.Config{
		Kube: mgr.GetClient(), Source: assembly.Buffers, Mirror: m.Store, Convert: m.feed.Buffers, Clock: cfg.Clock,
	})
	return l, l.Planned
}

// nominationsPerSecond is half of the requests that the controller may make: the others
// register and initialize the nodes that the nominations name.
func nominationsPerSecond(o Options) int {
	if !o.NominatePods {
		return 0
	}
	return max(1, o.KubeClientQPS/2)
}

// surviving is the planner, which leaves out the pods on which it fails.
func surviving(log logr.Logger, cfg Config, numbers *metrics.Provisioning) *quarantine.Planner {
	return quarantine.New(planner.Solve, cfg.Clock, func(f quarantine.Failure) {
		numbers.PlanningFailed()
		log.Error(nil, "planning failed on pods, which is a mistake in nap to be reported; they wait and all others are planned",
			"workload", f.Owner, "pod", f.Pod.String(), "until", f.Until, "cause", f.Cause)
	})
}

// purchases are what is known of earlier purchases.
type purchases struct {
	made          *purchasebackoff.Purchases
	registrations *purchasebackoff.Registrations
}

func newPurchases(clk clock.Clock) purchases {
	return purchases{purchasebackoff.NewPurchases(clk), purchasebackoff.NewRegistrations(clk)}
}

// store writes down what must survive a restart.
func (p purchases) store() *purchasebackoff.Store {
	return &purchasebackoff.Store{Breakers: map[string]*purchasebackoff.Breaker{
		"landings": p.made.Landings, "launches": p.made.Launches, "registrations": p.registrations.Breaker,
	}}
}

// newDisruption returns nap's own loop that removes nodes.
func newDisruption(mgr manager.Manager, cfg Config, assembly *karpenter.Assembly, cloud Cloud, m mirror,
	past purchases, moves *snapshot.Moves) (*disruption.Loop, error) {
	numbers, err := metrics.NewDisruption(ctrlmetrics.Registry)
	if err != nil {
		return nil, err
	}
	terms := cfg.Options.Terms
	terms.SpotToSpot = cfg.Options.FeatureGates.SpotToSpotConsolidation
	var window func(context.Context, time.Time) (bool, time.Time, error)
	if cfg.Options.ConsolidateInWindow {
		window = cloud.Maintenance
	}
	return disruption.NewLoop(disruption.Config{
		Clients:  disruption.Clients{Cached: mgr.GetClient(), Live: mgr.GetAPIReader()},
		Mirror:   m,
		Catalogs: past.made.Sizes.Over(cloud.Catalogs),
		MayBuy:   func() bool { return cloud.mayBuy() && m.BuffersPlanned() },
		Plan:     consolidate.Plan,
		Window:   window,
		Moves:    moves,
		Paused:   past.registrations.PausedPools,
		Cluster:  assembly.Cluster,
		Evictor:  assembly.Evictions,
		Recorder: assembly.Recorder,
		Metrics:  numbers,
		Clock:    cfg.Clock,
		NewID:    rand.String,
		Settings: disruption.Settings{
			Terms:             terms,
			Budget:            cfg.Options.ConsolidationBudget,
			Repairs:           cfg.Options.FeatureGates.NodeRepair && !cfg.Options.LegacyNodeRepair,
			TerminateFirst:    terminateFirst(&cfg.Options.FeatureGates),
			IgnorePreferences: cfg.Options.PreferencePolicy == options.PreferencePolicyIgnore,
			RelaxMinValues:    cfg.Options.MinValuesPolicy == options.MinValuesPolicyBestEffort,
			Share:             cfg.Options.NodeShare,
		},
	}), nil
}

// terminateFirst are the reasons for which nodes of static pools at their limit go before
// their replacements are created.
func terminateFirst(gates *options.FeatureGates) []model.DisruptionReason {
	var out []model.DisruptionReason
	if gates.TerminateFirstDrift {
		out = append(out, model.DisruptDrifted)
	}
	if gates.TerminateFirstRepair {
		out = append(out, model.DisruptUnhealthy)
	}
	return out
}

// watchOverlays plans again when a NodeOverlay is written or deleted.
func watchOverlays(mgr manager.Manager, changed func()) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("provisioner.trigger.nodeoverlay").
		For(&karpv1alpha1.NodeOverlay{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			changed()
			return reconcile.Result{}, nil
		}))
	if err != nil {
		return fmt.Errorf("registering controller provisioner.trigger.nodeoverlay: %w", err)
	}
	return nil
}

// mirror is the fleet's store together with the way in which objects get there.
type mirror struct {
	*fleet.Store
	feed *kube.Mirror
}

func newMirror(settings kube.Settings) mirror {
	store := fleet.NewStore()
	return mirror{store, kube.NewMirror(store, settings)}
}

// Expect counts a created claim as capacity until the informers deliver it.
func (m mirror) Expect(claim *karpv1.NodeClaim) { m.Store.Expect(m.feed.Claim(claim)) }

// fedLoops runs the loops once the mirror has seen the whole cluster: a plan made
// on half of it would buy the other half again, or remove it.
type fedLoops struct {
	loops []manager.Runnable
	// before are called when the mirror has seen the cluster and before the loops begin.
	before []func(context.Context)
	// first starts the loops.
	first  firstPlan
	mirror mirror
	mgr    manager.Manager
	// fed is set once the mirror has seen the whole cluster.
	fed atomic.Bool
}

func (f *fedLoops) NeedLeaderElection() bool { return true }

func (f *fedLoops) Start(ctx context.Context) error {
	if err := f.mirror.feed.Feed(ctx, f.mgr.GetCache()); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop before it had read everything
		}
		return fmt.Errorf("reading the cluster: %w", err)
	}
	f.fed.Store(true)
	for _, step := range f.before {
		step(ctx)
	}
	log.FromContext(ctx).Info("the cluster is mirrored, provisioning and disruption begin")
	group, ctx := errgroup.WithContext(ctx)
	f.first.make(ctx, func() {
		for _, loop := range f.loops {
			group.Go(func() error { return loop.Start(ctx) })
		}
	})
	return group.Wait()
}

// addMarketWatches has the loops called when prices, limits or NodeOverlays have changed.
func addMarketWatches(mgr manager.Manager, cfg Config, market func() uint64, loops ...func()) error {
	changed := func() {
		for _, tell := range loops {
			tell()
		}
	}
	if cfg.Options.FeatureGates.NodeOverlay {
		if err := watchOverlays(mgr, changed); err != nil {
			return err
		}
	}
	if err := mgr.Add(&marketWatch{market: market, clock: cfg.Clock, changed: changed}); err != nil {
		return fmt.Errorf("adding the watch of the market: %w", err)
	}
	return nil
}

// lookAtMarket is how often prices and limits are looked at for a change. It reads
// memory alone.
const lookAtMarket = 500 * time.Millisecond

// marketWatch wakes the loops when prices or limits have changed.
type marketWatch struct {
	market  func() uint64
	clock   clock.Clock
	changed func()
}

func (w *marketWatch) NeedLeaderElection() bool { return true }

func (w *marketWatch) Start(ctx context.Context) error {
	seen := w.market()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-periodic.After(w.clock, lookAtMarket):
		}
		if now := w.market(); now != seen {
			seen = now
			w.changed()
		}
	}
}
