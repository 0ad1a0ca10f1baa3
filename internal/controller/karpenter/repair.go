package karpenter

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/reasonable"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/metrics"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
	"sigs.k8s.io/karpenter/pkg/utils/pretty"

	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// repair finds unhealthy nodes where Karpenter's disruption loop, of which that is a part,
// does not run. A node is due when a condition has lasted as long as its policy tolerates and
// still stands at a second look, when neither an annotation nor too many unhealthy nodes
// speak against it. What is then done, it does itself or asks for on the NodeClaim:
//
//   - A node to be replaced is marked by an annotation while it is due. nap's disruption loop
//     replaces it within the budgets, the new machine first where its pods need one.
//   - A reboot is asked for by a condition. Karpenter's controller of reboots carries it out.
//   - A node that is about to vanish, that was never able to run pods or cannot since its
//     reboot, or that is of no NodePool is given up at once: nothing is gained by waiting.
//     Of these the budgets count the first alone.
//
// It is drained for as long as the policy and the NodeClaim allow, the shorter of both.
type repair struct {
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
	// dueSince is when a node, by UID, was first seen with a condition that is due.
	// It is lost in a restart, which only makes repairs later. mu guards it.
	dueSince map[types.UID]time.Time
	// reboots are those of the last day; mu guards them.
	reboots rebootHistory
}

// repairPolicy is a policy with its pattern of reasons; an empty one matches all.
type repairPolicy struct {
	cloudprovider.RepairPolicy
	reason *regexp.Regexp
}

// newRepair returns the controller.
func newRepair(kube client.Client, cloud cloudprovider.CloudProvider, cluster Cluster, clk clock.Clock, recorder events.Recorder) *repair {
	r := &repair{kube: kube, cloud: cloud, cluster: cluster, clock: clk, recorder: recorder, dueSince: map[types.UID]time.Time{},
		reboots: rebootHistory{}}
	for _, p := range cloud.RepairPolicies() {
		r.policies = append(r.policies, repairPolicy{p, regexp.MustCompile(p.ReasonRegex)})
	}
	return r
}

const (
	// repairAgain is the pause before a node is looked at again whose repair is not allowed.
	repairAgain = 30 * time.Second
	// secondLook is for how long a node is seen unhealthy before it is given up. What
	// makes one node unhealthy often makes others so a moment later, and then none of
	// them is repaired; and some of it passes. Karpenter validates after 15 s.
	secondLook = 15 * time.Second
	// noTime is the drain bound up to which there is no second look and no replacement
	// first: the machine itself does not stay for longer.
	noTime = 30 * time.Second
	// unhealthyAtMost is the share of a NodePool's nodes, rounded up, beyond which
	// unhealthy ones are not repaired: something else is wrong then. As in Karpenter.
	unhealthyAtMost = "20%"
)

func (r *repair) Name() string { return "node.health" }

func (r *repair) Register(_ context.Context, m manager.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named(r.Name()).
		For(&corev1.Node{}, builder.WithPredicates(nodeutils.IsManagedPredicateFuncs(r.cloud), predicate.Funcs{
			UpdateFunc: func(e ctrlevent.UpdateEvent) bool { // not at each heartbeat
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
	if err != nil {
		err = nodeutils.IgnoreDuplicateNodeClaimError(nodeutils.IgnoreNodeClaimNotFoundError(err))
		if err != nil {
			err = fmt.Errorf("reading the NodeClaim of node %s: %w", node.Name, err)
		}
		return reconcile.Result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if over, err := r.rebootOver(ctx, claim); err != nil || !over {
		delete(r.dueSince, node.UID)
		return reconcile.Result{RequeueAfter: repairAgain}, err
	}
	match, wait := r.due(node, rebootedAt(claim))
	if match == nil || !claim.DeletionTimestamp.IsZero() || !node.DeletionTimestamp.IsZero() {
		delete(r.dueSince, node.UID)
		return reconcile.Result{RequeueAfter: wait}, r.unmark(ctx, claim)
	}
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	why, err := r.vetoed(ctx, node, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	if why != nil {
		r.recorder.Publish(why...)
		return reconcile.Result{RequeueAfter: repairAgain}, r.unmark(ctx, claim)
	}
	return r.act(ctx, node, claim, match)
}

// act does what a node that is due needs, as far as the budgets of its NodePool allow it
// where they count the node.
func (r *repair) act(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim, match *repairMatch) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: repairAgain}
	pool, err := r.pool(ctx, node, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	initialized := node.Labels[v1.NodeInitializedLabelKey] == "true"
	reboots := match.action == cloudprovider.RebootNode && !r.reboots.exhausted(claim.UID, r.clock.Now())
	replaces := !reboots && pool != nil && !match.atOnce() && initialized
	if replaces {
		err = r.mark(ctx, claim, match, r.dueSince[node.UID])
	} else {
		err = r.unmark(ctx, claim)
	}
	if err != nil || moved(claim) && (replaces || reboots) {
		return again, err
	}
	// Budgets count initialized nodes alone, so one that is none needs no room in them.
	if pool != nil && initialized && r.allowed(pool) <= 0 {
		r.recorder.Publish(event.RepairBlocked(node, claim, "the budgets of NodePool "+pool.Name)...)
		return again, nil
	}
	switch {
	case replaces: // the disruption loop sees the mark
		return again, nil
	case reboots:
		if err := r.reboot(ctx, claim, match); err != nil {
			return reconcile.Result{}, fmt.Errorf("rebooting node %s: %w", node.Name, err)
		}
		delete(r.dueSince, node.UID)
		return again, nil
	}
	if err := r.giveUp(ctx, node, claim, match); err != nil {
		return reconcile.Result{}, fmt.Errorf("repairing node %s: %w", node.Name, err)
	}
	delete(r.dueSince, node.UID)
	r.cluster.MarkForDeletion(node.Spec.ProviderID)
	return reconcile.Result{}, nil
}

// pool is the NodePool of a claim, nil where there is none.
func (r *repair) pool(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) (*v1.NodePool, error) {
	name, pooled := claim.Labels[v1.NodePoolLabelKey]
	if !pooled {
		return nil, nil
	}
	pool := &v1.NodePool{}
	err := r.kube.Get(ctx, types.NamespacedName{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the NodePool of unhealthy node %s: %w", node.Name, err)
	}
	return pool, nil
}

// due is what makes the node due for repair now, or nil: of several policies one that
// replaces it before one that reboots it, and then the one with the shortest drain. What a
// node has said since before it was made, or before its last reboot ended, has lasted since
// then. A positive wait is when to look again.
func (r *repair) due(node *corev1.Node, rebooted time.Time) (match *repairMatch, wait time.Duration) {
	now := r.clock.Now()
	for _, p := range r.policies {
		c := nodeutils.GetCondition(node, p.ConditionType)
		if !p.matches(c) {
			continue
		}
		since := c.LastTransitionTime.Time
		for _, begun := range []time.Time{node.CreationTimestamp.Time, rebooted} {
			if begun.After(since) {
				since = begun
			}
		}
		if left := since.Add(p.TolerationDuration).Sub(now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		found := &repairMatch{action: p.Action, condition: c.Type, reason: c.Reason, grace: p.TerminationGracePeriod}
		if match == nil || found.before(match) {
			match = found
		}
	}
	if match == nil {
		return nil, wait
	}
	since, known := r.dueSince[node.UID]
	if !known {
		since = now
		r.dueSince[node.UID] = now
	}
	if match.atOnce() {
		return match, 0
	}
	return match, max(0, since.Add(secondLook).Sub(now))
}

// repairMatch is why and how a node is repaired, and for how long it is drained; nil means
// for as long as its NodeClaim allows.
type repairMatch struct {
	action    cloudprovider.RepairAction
	condition corev1.NodeConditionType
	reason    string
	grace     *time.Duration
}

// before reports whether m counts rather than another match.
func (m *repairMatch) before(other *repairMatch) bool {
	if m.action != other.action {
		return m.action.IsMoreDisruptiveThan(other.action)
	}
	return shorter(m.grace, other.grace)
}

// atOnce reports whether the machine itself does not stay for longer than its drain.
func (m *repairMatch) atOnce() bool { return m.grace != nil && *m.grace <= noTime }

// bound is for how long the node of a claim is drained, nil for as long as that takes.
func (m *repairMatch) bound(claim *v1.NodeClaim) *time.Duration {
	var own *time.Duration
	if claim.Spec.TerminationGracePeriod != nil {
		own = &claim.Spec.TerminationGracePeriod.Duration
	}
	if shorter(own, m.grace) {
		return own
	}
	return m.grace
}

func (p repairPolicy) matches(c corev1.NodeCondition) bool {
	return c.Status == p.ConditionStatus && p.reason.MatchString(c.Reason)
}

// shorter compares two bounds, of which nil is none.
func shorter(x, y *time.Duration) bool { return x != nil && (y == nil || *x < *y) }

// vetoed says by events why a node must not be repaired now, budgets aside, or nothing.
func (r *repair) vetoed(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) ([]events.Event, error) {
	for _, annotations := range []map[string]string{node.Annotations, claim.Annotations} {
		if annotations[v1.DoNotRepairAnnotationKey] == "true" {
			return event.RepairBlocked(node, claim, "the annotation "+v1.DoNotRepairAnnotationKey), nil
		}
	}
	name, pooled := claim.Labels[v1.NodePoolLabelKey]
	many, err := r.manyUnhealthy(ctx, name, pooled)
	if err != nil || many {
		return event.TooManyUnhealthy(node, claim, unhealthyAtMost), err
	}
	return nil, nil
}

// manyUnhealthy reports whether too many nodes of the NodePool, or of the cluster for a
// node that has none, match a policy, tolerated or not.
func (r *repair) manyUnhealthy(ctx context.Context, pool string, pooled bool) (bool, error) {
	opts := []client.ListOption{client.UnsafeDisableDeepCopy}
	if pooled {
		opts = append(opts, client.MatchingLabels{v1.NodePoolLabelKey: pool})
	}
	nodes := &corev1.NodeList{}
	if err := r.kube.List(ctx, nodes, opts...); err != nil {
		return false, fmt.Errorf("listing the nodes of NodePool %q: %w", pool, err)
	}
	unhealthy := 0
	for i := range nodes.Items {
		if slices.ContainsFunc(r.policies, func(p repairPolicy) bool {
			return p.matches(nodeutils.GetCondition(&nodes.Items[i], p.ConditionType))
		}) {
			unhealthy++
		}
	}
	share := intstr.FromString(unhealthyAtMost)
	most, err := intstr.GetScaledValueFromIntOrPercent(&share, len(nodes.Items), true)
	if err != nil {
		return false, fmt.Errorf("the share %s of unhealthy nodes: %w", unhealthyAtMost, err)
	}
	return unhealthy > most, nil
}

// giveUp deletes the node's claim. Its drain ends by force when the bound of the policy,
// or a shorter one of the claim, has passed.
func (r *repair) giveUp(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim, why *repairMatch) error {
	if why.grace != nil {
		bound := *why.bound(claim)
		stored := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, v1.NodeClaimTerminationTimestampAnnotationKey,
			r.clock.Now().Add(bound).Format(time.RFC3339))
		if err := r.kube.Patch(ctx, claim, client.MergeFrom(stored)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if err := r.kube.Delete(ctx, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("giving an unhealthy node up", "Node", node.Name, "NodeClaim", claim.Name, "condition", why.condition)
	labels := map[string]string{
		metrics.ReasonLabel: metrics.UnhealthyReason, metrics.NodePoolLabel: node.Labels[v1.NodePoolLabelKey],
		metrics.CapacityTypeLabel: node.Labels[v1.CapacityTypeLabelKey], metrics.ConsolidationPolicyLabel: "",
		metrics.TerminationModeLabel: nodeclaimutils.DisruptionTerminationMode(claim),
	}
	metrics.NodeClaimsDisruptedTotal.Inc(labels)
	pods, err := nodeutils.ReschedulablePods(ctx, r.kube, node.Name)
	if err != nil { // the metric alone needs them
		log.FromContext(ctx).V(1).Info("counting the pods of an unhealthy node failed", "Node", node.Name, "error", err.Error())
	}
	metrics.PodsDisruptionInitiatedTotal.Add(float64(len(pods)), labels)
	disruption.NodeClaimsUnhealthyDisruptedTotal.Inc(map[string]string{
		disruption.RepairCondition.Name: pretty.ToSnakeCase(string(why.condition)),
		metrics.NodePoolLabel:           node.Labels[v1.NodePoolLabelKey],
		metrics.CapacityTypeLabel:       node.Labels[v1.CapacityTypeLabelKey],
		disruption.ImageID.Name:         claim.Status.ImageID,
		metrics.TerminationModeLabel:    nodeclaimutils.DisruptionTerminationMode(claim),
	})
	return nil
}

// allowed is the number of nodes of a NodePool that may be repaired now. Nodes that a
// command is about to remove count although their claims are not deleted yet.
func (r *repair) allowed(pool *v1.NodePool) int {
	nodes := r.cluster.DeepCopyNodes()
	numbers, disrupting := disruption.NodePoolStatsFromNodes(nodes, v1.DisruptionReasonUnhealthy)
	left := pool.MustGetAllowedDisruptions(r.clock, numbers[pool.Name], v1.DisruptionReasonUnhealthy) - disrupting[pool.Name]
	for _, n := range nodes {
		if n.NodeClaim != nil && n.NodeClaim.Labels[v1.NodePoolLabelKey] == pool.Name && !n.MarkedForDeletion() &&
			n.NodeClaim.StatusConditions().Get(v1.ConditionTypeDisruptionReason).IsTrue() && !leftByReboot(n.NodeClaim) {
			left--
		}
	}
	return left
}
