package karpenter

import (
	"slices"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// A NodeClaim of a static NodePool that is deleted is replaced at once, although Karpenter's mirror of
// the cluster hears of the deletion after the controller does.
func TestDeletedClaimOfStaticPoolIsReplacedAtOnce(t *testing.T) {
	made := &options.Options{IgnoreDRARequests: true, FeatureGates: options.FeatureGates{StaticCapacity: true}}
	ctx := options.ToContext(t.Context(), made)
	class := object.GVK(ofPools{}.GetSupportedNodeClasses()[0])
	ref := &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "fixed", UID: "pool"}}
	pool.Spec.Replicas, pool.Spec.Template.Spec.NodeClassRef = ptr.To[int64](2), ref
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	claim := func(name string) *v1.NodeClaim {
		return &v1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{v1.NodePoolLabelKey: "fixed"}, Finalizers: []string{v1.TerminationFinalizer},
			},
			Spec:   v1.NodeClaimSpec{NodeClassRef: ref},
			Status: v1.NodeClaimStatus{ProviderID: "azure:///" + name},
		}
	}
	a, b := claim("fixed-a"), claim("fixed-b")
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool, a, b).WithStatusSubresource(pool, a).Build()
	clk := clocktesting.NewFakeClock(time.Now())
	cluster := Cluster{state.NewCluster(clk, kube, seller{})}
	cluster.UpdateNodeClaim(a)
	cluster.UpdateNodeClaim(b)
	cluster.SetSynced(true)
	assembly := &Assembly{kube: kube, clock: clk, Cloud: seller{}, options: made, Cluster: cluster}
	assembly.simulation.provisioner = provisioning.NewProvisioner(kube, nil, seller{}, cluster.Cluster, clk, nil, nil)
	all := assembly.gated(Deciders{})
	at := slices.IndexFunc(all, func(n named) bool { return n.name == "static.provisioning" })
	mgr := &keptManager{kube: kube}
	if err := all[at].Register(ctx, mgr); err != nil || len(mgr.added) != 1 {
		t.Fatalf("%d controllers, %v", len(mgr.added), err)
	}
	if err := kube.Delete(ctx, a.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	var deleted v1.NodeClaim
	if err := kube.Get(ctx, client.ObjectKeyFromObject(a), &deleted); err != nil {
		t.Fatal(err)
	}
	mirrored := time.AfterFunc(5*mirroredEvery, func() { cluster.UpdateNodeClaim(&deleted) })
	defer mirrored.Stop()
	req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)}
	if _, err := mgr.added[0].(reconcile.Reconciler).Reconcile(ctx, req); err != nil {
		t.Fatal(err)
	}
	var claims v1.NodeClaimList
	if err := kube.List(ctx, &claims); err != nil || len(claims.Items) != 3 {
		t.Errorf("%d NodeClaims (%v), want two that stay and the deleted one", len(claims.Items), err)
	}
}
