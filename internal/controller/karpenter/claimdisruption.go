package karpenter

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	claimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
	utilscontroller "sigs.k8s.io/karpenter/pkg/utils/controller"
	nodeclaimutils "sigs.k8s.io/karpenter/pkg/utils/nodeclaim"
)

// claimConditions runs Karpenter's controller of the conditions Drifted and Consolidatable of
// NodeClaims, when a NodeClaim, its NodePool or its AKSNodeClass changes. Karpenter runs it for
// each change of a pod, too, and copies the pod's node, NodeClaim and NodePool for it (v1.15.0),
// although the controller reads no pod: it goes by the NodeClaim's status.lastPodEventTime. Nor
// does it read the status of a NodePool, which changes with each machine that comes or goes.
type claimConditions struct {
	*claimdisruption.Controller
	cloud cloudprovider.CloudProvider
}

// Register adds the controller to the manager, with the name and as many workers as Karpenter
// gives it.
func (c claimConditions) Register(ctx context.Context, m manager.Manager) error {
	workers := utilscontroller.LinearScaleReconciles(utilscontroller.CPUCount(ctx), 10, 1000)
	b := ctrl.NewControllerManagedBy(m).Named(c.Name()).
		For(&v1.NodeClaim{}, builder.WithPredicates(nodeclaimutils.IsManagedPredicateFuncs(c.cloud))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Watches(&v1.NodePool{}, nodeclaimutils.NodePoolEventHandler(m.GetClient(), c.cloud), builder.WithPredicates(poolsOfClaims()))
	for _, class := range c.cloud.GetSupportedNodeClasses() {
		b.Watches(class, nodeclaimutils.NodeClassEventHandler(m.GetClient()))
	}
	return b.Complete(reconcile.AsReconciler(m.GetClient(), c.Controller))
}

// poolsOfClaims passes changes of what the controller reads of a NodePool: its spec, and the hash
// of that, which is an annotation.
func poolsOfClaims() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}
