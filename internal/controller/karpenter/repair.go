package karpenter

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/reasonable"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	disruptionevents "sigs.k8s.io/karpenter/pkg/controllers/disruption/events"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/node/legacyrepair"
	"sigs.k8s.io/karpenter/pkg/events"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
)

// repair replaces unhealthy nodes where Karpenter's disruption loop, of which that is a
// part, does not run. The replacing is done by the controller that Karpenter has kept
// from before; what users may say since (an annotation against it, budgets with the
// reason Unhealthy) is asked here first.
type repair struct {
	legacy   *legacyrepair.Controller
	kube     client.Client
	cloud    cloudprovider.CloudProvider
	cluster  Cluster
	clock    clock.Clock
	recorder events.Recorder
	// policies say for how long which condition of a node is tolerated.
	policies []repairPolicy

	// mu is held from the question whether a budget allows a node's repair until the
	// node counts against the budget.
	mu sync.Mutex
}

// repairPolicy is a policy with its pattern of reasons; an empty one matches all.
type repairPolicy struct {
	cloudprovider.RepairPolicy
	reason *regexp.Regexp
}

// newRepair returns the controller; legacy and it must be of the same cloud provider.
func newRepair(legacy *legacyrepair.Controller, kube client.Client, cloud cloudprovider.CloudProvider, cluster Cluster,
	clk clock.Clock, recorder events.Recorder) *repair {
	r := &repair{legacy: legacy, kube: kube, cloud: cloud, cluster: cluster, clock: clk, recorder: recorder}
	for _, p := range cloud.RepairPolicies() {
		r.policies = append(r.policies, repairPolicy{p, regexp.MustCompile(p.ReasonRegex)})
	}
	return r
}

// repairAgain is the pause before a node is looked at again whose repair is not allowed.
const repairAgain = 30 * time.Second

func (r *repair) Name() string { return r.legacy.Name() }

func (r *repair) Register(_ context.Context, m manager.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named(r.Name()).
		For(&corev1.Node{}, builder.WithPredicates(nodeutils.IsManagedPredicateFuncs(r.cloud), predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { // not at each heartbeat
				before, ok := e.ObjectOld.(*corev1.Node)
				now, is := e.ObjectNew.(*corev1.Node)
				return !ok || !is || !health.MatchInputsEqual(before, now)
			},
		})).
		WithOptions(controller.Options{RateLimiter: reasonable.RateLimiter(), MaxConcurrentReconciles: 10}).
		Complete(reconcile.AsReconciler(m.GetClient(), r))
}

// Reconcile repairs a node that needs it, if it may be repaired now.
func (r *repair) Reconcile(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	claim, err := nodeutils.NodeClaimForNode(ctx, r.kube, node)
	if err != nil || !claim.DeletionTimestamp.IsZero() || !r.due(node) {
		return r.legacy.Reconcile(ctx, node) // it knows these errors, and when the node is due
	}
	for _, annotations := range []map[string]string{node.Annotations, claim.Annotations} {
		if annotations[v1.DoNotRepairAnnotationKey] == "true" {
			r.recorder.Publish(disruptionevents.Blocked(node, claim, "Repair is blocked by the annotation "+v1.DoNotRepairAnnotationKey)...)
			return reconcile.Result{RequeueAfter: repairAgain}, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pool := &v1.NodePool{}
	err = r.kube.Get(ctx, types.NamespacedName{Name: claim.Labels[v1.NodePoolLabelKey]}, pool)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading the NodePool of unhealthy node %s: %w", node.Name, err)
	}
	if err == nil && r.allowed(pool) <= 0 {
		r.recorder.Publish(disruptionevents.Blocked(node, claim, fmt.Sprintf("Repair is blocked by the budgets of NodePool %s", pool.Name))...)
		return reconcile.Result{RequeueAfter: repairAgain}, nil
	}
	result, err := r.legacy.Reconcile(ctx, node)
	if err != nil {
		return result, fmt.Errorf("repairing node %s: %w", node.Name, err)
	}
	now, err := nodeutils.NodeClaimForNode(ctx, r.kube, node)
	if nodeutils.IsNodeClaimNotFoundError(err) || err == nil && !now.DeletionTimestamp.IsZero() {
		r.cluster.MarkForDeletion(node.Spec.ProviderID)
	}
	return result, nil
}

// due reports whether a condition of the node has lasted as long as a policy tolerates.
func (r *repair) due(node *corev1.Node) bool {
	for _, p := range r.policies {
		c := nodeutils.GetCondition(node, p.ConditionType)
		if c.Status == p.ConditionStatus && p.reason.MatchString(c.Reason) &&
			!r.clock.Now().Before(c.LastTransitionTime.Add(p.TolerationDuration)) {
			return true
		}
	}
	return false
}

// allowed is the number of nodes of a NodePool that may be repaired now. Nodes that a
// command is about to remove count although their claims are not deleted yet.
func (r *repair) allowed(pool *v1.NodePool) int {
	nodes := r.cluster.DeepCopyNodes()
	numbers, disrupting := disruption.NodePoolStatsFromNodes(nodes, v1.DisruptionReasonUnhealthy)
	left := pool.MustGetAllowedDisruptions(r.clock, numbers[pool.Name], v1.DisruptionReasonUnhealthy) - disrupting[pool.Name]
	for _, n := range nodes {
		if n.NodeClaim != nil && n.NodeClaim.Labels[v1.NodePoolLabelKey] == pool.Name && !n.MarkedForDeletion() &&
			n.NodeClaim.StatusConditions().Get(v1.ConditionTypeDisruptionReason).IsTrue() {
			left--
		}
	}
	return left
}
