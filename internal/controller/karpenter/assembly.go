package karpenter

import (
	"context"
	"fmt"
	"slices"

	opcontroller "github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	cloudmetrics "sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/cost"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
)

// Deciders says which of Karpenter's two deciding loops run. The lifecycle
// controllers run in any case.
type Deciders struct {
	// Provisioning runs Karpenter's provisioner and its triggers.
	Provisioning bool
	// Disruption runs Karpenter's disruption loop and its queue.
	Disruption bool
	// RepairAlone repairs unhealthy nodes without that loop, within its rules; with the
	// feature gate NodeRepair.
	RepairAlone bool
}

// Scope is what an assembly runs.
type Scope struct {
	Deciders
	// DetailedMetrics keeps the metrics of single nodes, pods and other objects.
	DetailedMetrics bool
}

// Assembly is the state that Karpenter's controllers share. The exported parts
// are those that nap's own loop must keep informed, so that Karpenter's
// disruption neither races with it nor fights it.
type Assembly struct {
	// Cluster is Karpenter's mirror of nodes and claims.
	Cluster Cluster
	// Recorder publishes events with Karpenter's deduplication and rate limits.
	Recorder events.Recorder
	// Cloud is the cloud provider as the controllers see it: measured, and with
	// NodeOverlays applied where that gate is on.
	Cloud cloudprovider.CloudProvider
	// Evictions evicts the pods of nodes that are drained.
	Evictions Evictions
	// Buffers are what CapacityBuffers ask for, with that feature gate.
	Buffers *Buffers

	mgr     manager.Manager
	kube    client.Client
	clock   clock.Clock
	options *options.Options
	// undecorated is Cloud without NodeOverlays, overlays are those.
	undecorated cloudprovider.CloudProvider
	overlays    *nodeoverlay.InstanceTypeStore
	simulation  simulation
	poolHealth  *nodepoolhealth.State
	cost        *cost.ClusterCost
	// registrations are the hooks of New.
	registrations []cloudprovider.NodeLifecycleHook
}

// simulation is what Karpenter simulates scheduling with. Disruption, static capacity
// and capacity buffers need it even where Karpenter's provisioning loop does not run.
type simulation struct {
	provisioner *provisioning.Provisioner
	devices     *deviceallocation.Controller
	virtualPods *virtualpods.Cache
}

// New builds the shared state on a manager from [NewManager]. The hooks hold a
// node's registration back until they are satisfied; most providers have none. It
// fails where nodes are to be repaired and the provider's policies do not say how.
func New(ctx context.Context, mgr manager.Manager, clk clock.Clock,
	cloud cloudprovider.CloudProvider, hooks ...cloudprovider.NodeLifecycleHook) (*Assembly, error) {
	kube := mgr.GetClient()
	repairs, err := health.NewRepairPolicyMatcher(ctx, cloud)
	if err != nil {
		return nil, fmt.Errorf("feature gate NodeRepair: %w", err)
	}
	overlays := nodeoverlay.NewInstanceTypeStore()
	measured := cloudmetrics.Decorate(cloud)
	decorated := overlay.Decorate(measured, kube, overlays)
	recorder := events.NewRecorder(recorderOf(mgr))
	a := &Assembly{
		Cluster:       Cluster{state.NewCluster(clk, kube, decorated, state.WithRepairPolicyMatcher(repairs))},
		Recorder:      recorder,
		Evictions:     newEvictions(kube, clk, recorder),
		Cloud:         decorated,
		mgr:           mgr,
		kube:          kube,
		clock:         clk,
		options:       options.FromContext(ctx),
		undecorated:   measured,
		overlays:      overlays,
		poolHealth:    nodepoolhealth.NewState(),
		cost:          cost.NewClusterCost(ctx, decorated, kube),
		registrations: hooks,
	}
	devices, virtualPods := deviceallocation.NewController(kube), virtualpods.NewVirtualPodCache(kube)
	a.simulation = simulation{
		provisioner: provisioning.NewProvisioner(kube, a.Recorder, decorated, a.Cluster.Cluster, clk, devices, virtualPods),
		devices:     devices, virtualPods: virtualPods,
	}
	a.Buffers = &Buffers{virtual: virtualPods, changed: make(chan struct{}, 1)}
	return a, nil
}

// eventSource is the component that events name as their source, as in Karpenter,
// so that users' filters keep working.
const eventSource = "karpenter"

// Register adds the lifecycle controllers and the chosen deciders to the
// manager. Metrics of Karpenter's are replaced for the whole process: it is called once.
func (a *Assembly) Register(ctx context.Context, scope Scope) error {
	groups := [][]named{
		a.lifecycle(),
		a.informers(ctx),
	}
	if !a.options.DisableClusterStateObservability {
		o := observability{
			mgr: a.mgr, kube: a.kube, cluster: a.Cluster.Cluster, cloud: a.Cloud, cost: a.cost,
			capacityBuffers: a.options.FeatureGates.CapacityBuffer, detailed: scope.DetailedMetrics,
		}
		controllers, err := o.controllers()
		if err != nil {
			return fmt.Errorf("registering Karpenter's metrics: %w", err)
		}
		groups = append(groups, controllers)
	}
	groups = append(groups, a.gated(scope.Deciders))
	if scope.Provisioning {
		groups = append(groups, a.provisioning())
	}
	if scope.Disruption {
		groups = append(groups, a.disruption(ctx))
	}
	for _, group := range groups {
		for _, c := range group {
			if err := c.Register(ctx, a.mgr); err != nil {
				return fmt.Errorf("registering controller %s: %w", c.name, err)
			}
		}
	}
	return nil
}

// named is a controller with the name under which an error speaks of it.
type named struct {
	name string
	opcontroller.Controller
}

// Cluster is Karpenter's mirror with what nap's loop asks of it beside.
type Cluster struct {
	*state.Cluster
}

// Leaving are the names of the nodes that are being given up: deleted, or chosen
// by a disruption whose replacements have been created.
func (c Cluster) Leaving() map[string]bool {
	out := map[string]bool{}
	for n := range c.Nodes() {
		if n.Node != nil && n.MarkedForDeletion() {
			out[n.Node.Name] = true
		}
	}
	return out
}

// Touch takes every lock of the mirror and gives it back. It does not return while one
// of them is held for ever.
func (c Cluster) Touch() {
	for range c.Nodes() { // the lock is held while nodes are ranged over
		break
	}
	c.NodePoolState.GetNodeCount("")
}

// KnowsDisruption reports whether the mirror has a claim with the condition that says why
// it is disrupted. A claim without a machine is in no count that this could change, and
// is known.
func (c Cluster) KnowsDisruption(claim string) bool {
	for n := range c.Nodes() {
		if n.NodeClaim != nil && n.NodeClaim.Name == claim {
			return slices.ContainsFunc(n.NodeClaim.Status.Conditions, func(c status.Condition) bool {
				return c.Type == karpv1.ConditionTypeDisruptionReason && c.Status == metav1.ConditionTrue
			})
		}
	}
	return true
}

// PendingDisruption says whether a claim of a static pool is about to go: it counts on,
// so that nothing is bought beside the replacement, and the replacement will not count
// as one too many. As in Karpenter's own queue the claim is not marked for deletion
// before the replacement has been created (see [Cluster.Replaced]).
func (c Cluster) PendingDisruption(pool, claim string, pending bool) {
	if pending {
		c.NodePoolState.MarkNodeClaimPendingDisruption(pool, claim)
		return
	}
	if id, found := c.providerID(claim); found {
		c.UnmarkForDeletion(id)
	}
	c.NodePoolState.MarkNodeClaimActive(pool, claim)
}

// Replaced says that the replacement of a claim has been created: from now on the
// replacement counts in its place. A claim without a machine is left as it is.
func (c Cluster) Replaced(claim string) {
	if id, found := c.providerID(claim); found {
		c.MarkForDeletion(id)
	}
}

// providerID is the machine of a claim. Karpenter's mirror is locked for reading while
// its nodes are ranged over, and marking takes the same lock for writing: so the search
// comes to its end here, before anything is marked.
func (c Cluster) providerID(claim string) (id string, found bool) {
	for n := range c.Nodes() {
		if n.NodeClaim != nil && n.NodeClaim.Name == claim {
			return n.ProviderID(), true
		}
	}
	return "", false
}
