// Package interruption acts on spot machines that Azure is about to take back.
//
// Azure gives a notice of about thirty seconds, a scheduled event on the machine
// itself; AKS's node problem detector makes it the node's condition
// PreemptionScheduled:
//
//	scheduled event ──> condition ──> NodeClaim deleted ──> node tainted, pods evicted
//	                                                   └──> pods planned for elsewhere
//
// The NodeClaim is deleted at once, whatever the feature gate NodeRepair and
// however many nodes are concerned: the machines go in any case, and every second
// counts for their replacements. Disruption budgets do not apply to what Azure
// does; PodDisruptionBudgets are honoured for as long as the machine lasts. What
// is taken back is not asked for again for a while. Start with [Controller].
package interruption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"

	"github.com/nodeautoprovision/nap/internal/controller/event"
)

// Condition is what says on a node that its machine will be taken back.
const Condition corev1.NodeConditionType = "PreemptionScheduled"

// Controller gives up the NodeClaims of machines that Azure takes back.
type Controller struct {
	kube     client.Client
	recorder events.Recorder
	evicted  func(size, zone string)
}

// New returns the controller. It tells evicted, which may be nil, of the size and
// zone of every machine that is taken back.
func New(kube client.Client, recorder events.Recorder, evicted func(size, zone string)) *Controller {
	return &Controller{kube: kube, recorder: recorder, evicted: evicted}
}

// Register adds the controller to a manager.
func (c *Controller) Register(_ context.Context, mgr manager.Manager) error {
	const atOnce = 50 // a zone may lose all its machines in one second
	noticed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		node, ok := o.(*corev1.Node)
		return ok && preempting(node)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("node.eviction").
		For(&corev1.Node{}, builder.WithPredicates(noticed)).
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

func preempting(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if cond := &node.Status.Conditions[i]; cond.Type == Condition {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Reconcile gives up the claim of one node.
func (c *Controller) Reconcile(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	if !preempting(node) || node.Spec.ProviderID == "" {
		return reconcile.Result{}, nil
	}
	var claims karpv1.NodeClaimList
	if err := c.kube.List(ctx, &claims, client.MatchingFields{"status.providerID": node.Spec.ProviderID}); err != nil {
		return reconcile.Result{}, fmt.Errorf("finding the NodeClaim of node %s: %w", node.Name, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !claim.DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.kube.Delete(ctx, claim); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return reconcile.Result{}, fmt.Errorf("giving up NodeClaim %s, whose machine is taken back: %w", claim.Name, err)
		}
		log.FromContext(ctx).Info("Azure takes a spot machine back", "NodeClaim", claim.Name, "Node", node.Name)
		if c.evicted != nil {
			c.evicted(node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone])
		}
		c.recorder.Publish(event.SpotEviction(claim, node)...)
	}
	return reconcile.Result{}, nil
}
