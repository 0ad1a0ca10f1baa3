package karpenter

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/object"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"
)

// keptManager keeps what controllers add to it, and runs nothing.
type keptManager struct {
	manager.Manager
	kube  client.Client
	added []manager.Runnable
}

func (m *keptManager) GetClient() client.Client   { return m.kube }
func (m *keptManager) GetScheme() *runtime.Scheme { return scheme.Scheme }
func (m *keptManager) GetCache() cache.Cache      { return &informertest.FakeInformers{} }
func (m *keptManager) GetLogger() logr.Logger     { return logr.Discard() }
func (m *keptManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true)}
}
func (m *keptManager) Add(r manager.Runnable) error { m.added = append(m.added, r); return nil }

// seller launches a machine for every NodeClaim.
type seller struct{ ofPools }

func (seller) Create(_ context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	made := claim.DeepCopy()
	made.Status.ProviderID = "azure:///" + claim.Name
	return made, nil
}

// Karpenter's lifecycle controller, as it registers itself, launches a NodeClaim once, however
// often it is run while the cache is behind.
func TestLifecycleLaunchesOnceWhileTheCacheIsBehind(t *testing.T) {
	ctx := options.ToContext(t.Context(), &options.Options{IgnoreDRARequests: true})
	class := object.GVK(ofPools{}.GetSupportedNodeClasses()[0])
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "general-a", UID: "a", Finalizers: []string{v1.TerminationFinalizer}},
		Spec:       v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}},
	}
	statuses := 0
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(claim).WithStatusSubresource(claim).
		WithIndex(Indexes()[1].Object, Indexes()[1].Field, Indexes()[1].Extract).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
			o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			statuses++
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		}}).Build()
	if err := kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	clk := clocktesting.NewFakeClock(time.Now())
	a := &Assembly{
		kube: kube, clock: clk, Cloud: seller{}, options: options.FromContext(ctx),
		Cluster: Cluster{state.NewCluster(clk, kube, seller{})}, poolHealth: nodepoolhealth.NewState(),
	}
	mgr := &keptManager{kube: behindClient{kube, claim.DeepCopy()}}
	all := a.lifecycle()
	at := slices.IndexFunc(all, func(n named) bool { return n.name == "nodeclaim.lifecycle" })
	if err := all[at].Register(ctx, mgr); err != nil || len(mgr.added) != 1 {
		t.Fatalf("%d controllers, %v", len(mgr.added), err)
	}
	run := func() {
		t.Helper()
		if _, err := mgr.added[0].(reconcile.Reconciler).Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		run()
	}
	if err := kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	if !claim.StatusConditions().Get(v1.ConditionTypeLaunched).IsTrue() || statuses != 1 {
		t.Errorf("launched is %v after %d writes of the status, want 1", claim.StatusConditions().Get(v1.ConditionTypeLaunched), statuses)
	}
}
