package karpenter

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/object"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"
)

// slowSeller sells machines whose nodes are there when it has made them. What happens meanwhile
// is its to say.
type slowSeller struct {
	seller
	meanwhile func(*v1.NodeClaim) error
	// deleted are the machines that it was asked to delete.
	deleted []string
}

func (s *slowSeller) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	if err := s.meanwhile(claim); err != nil {
		return nil, err
	}
	return s.seller.Create(ctx, claim)
}

func (s *slowSeller) Delete(_ context.Context, claim *v1.NodeClaim) error {
	s.deleted = append(s.deleted, claim.Status.ProviderID)
	return cloudprovider.NewNodeClaimNotFoundError(errors.New("it is gone"))
}

// A NodeClaim that is deleted while its machine is made never takes pods, and its machine is deleted.
func TestClaimDeletedWhileItLaunchesIsNotRegistered(t *testing.T) {
	for name, deletes := range map[string]bool{"deleted meanwhile": true, "kept": false} {
		ctx := options.ToContext(t.Context(), &options.Options{IgnoreDRARequests: true})
		class := object.GVK(ofPools{}.GetSupportedNodeClasses()[0])
		claim := &v1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "general-a", UID: "a", Finalizers: []string{v1.TerminationFinalizer}},
			Spec:       v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}},
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       corev1.NodeSpec{ProviderID: "azure:///general-a", Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint}},
		}
		build := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim, node).WithStatusSubresource(claim)
		for _, ix := range Indexes() {
			build = build.WithIndex(ix.Object, ix.Field, ix.Extract)
		}
		kube := build.Build()
		clk := clocktesting.NewFakeClock(time.Now())
		cloud := &slowSeller{meanwhile: func(c *v1.NodeClaim) error {
			if deletes {
				return kube.Delete(ctx, c.DeepCopy())
			}
			return nil
		}}
		a := &Assembly{
			kube: kube, clock: clk, Cloud: cloud, options: options.FromContext(ctx),
			Cluster: Cluster{state.NewCluster(clk, kube, cloud)}, poolHealth: nodepoolhealth.NewState(),
		}
		mgr := &keptManager{kube: kube}
		all := a.lifecycle()
		at := slices.IndexFunc(all, func(n named) bool { return n.name == "nodeclaim.lifecycle" })
		if err := all[at].Register(ctx, mgr); err != nil || len(mgr.added) != 1 {
			t.Fatalf("%s: %d controllers, %v", name, len(mgr.added), err)
		}
		for range 2 {
			req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)}
			if _, err := mgr.added[0].(reconcile.Reconciler).Reconcile(ctx, req); err != nil {
				t.Fatal(err)
			}
			if err := kube.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
				t.Fatal(err)
			}
			registered := node.Labels[v1.NodeRegisteredLabelKey] == "true" || !slices.Contains(node.Spec.Taints, v1.UnregisteredNoExecuteTaint)
			if registered == deletes {
				t.Errorf("%s: the node is registered: %v", name, registered)
			}
		}
		gone := apierrors.IsNotFound(kube.Get(ctx, client.ObjectKeyFromObject(claim), claim))
		if gone != deletes || slices.Contains(cloud.deleted, node.Spec.ProviderID) != deletes {
			t.Errorf("%s: the NodeClaim is gone: %v, machines deleted: %v", name, gone, cloud.deleted)
		}
	}
}
