package karpenter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/object"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	claimdisruption "sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/disruption"
)

// driftless is a cloud provider whose machines are what would be bought now.
type driftless struct{ ofPools }

func (driftless) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}

func (driftless) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return nil, nil
}

// Karpenter's controller of conditions is not run when a pod changes, for it reads none: the
// time that is noted on the NodeClaim is all that it goes by.
func TestConditionsOfNodeClaimsNeedNoPods(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	class := object.GVK(ofPools{}.GetSupportedNodeClasses()[0])
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Disruption.ConsolidateAfter.Duration = ptr.To(time.Minute)
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "general-a", Labels: map[string]string{v1.NodePoolLabelKey: "general"}},
		Spec:       v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: "default"}},
	}
	claim.Status.LastPodEventTime = metav1.NewTime(now.Add(-2 * time.Minute))
	for _, condition := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(condition)
	}
	forbid := func(o any) error {
		switch o.(type) {
		case *corev1.Pod, *corev1.PodList:
			return fmt.Errorf("it reads %T: run it when pods change, too", o)
		}
		return nil
	}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pool, claim).WithStatusSubresource(&v1.NodeClaim{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if err := forbid(o); err != nil {
					return err
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := forbid(list); err != nil {
					return err
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	r := claimdisruption.NewController(clocktesting.NewFakeClock(now), kube, driftless{})
	look := func() bool {
		t.Helper()
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		return claim.StatusConditions().Get(v1.ConditionTypeConsolidatable).IsTrue()
	}
	if !look() {
		t.Error("its pods have been quiet for longer than consolidateAfter, and it is not Consolidatable")
	}
	claim.Status.LastPodEventTime = metav1.NewTime(now.Add(-time.Second))
	if err := kube.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if look() {
		t.Error("a pod has just come, and it is Consolidatable")
	}
}

// A machine that comes or goes changes the status of its NodePool. The conditions of all others
// of the NodePool do not depend on it.
func TestConditionsOfNodeClaimsFollowTheirNodePool(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1.NodePool)
		told   bool
	}{
		"nothing": {func(*v1.NodePool) {}, false},
		"what its machines have": {func(p *v1.NodePool) {
			p.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
			p.Status.Nodes = ptr.To(int64(3))
		}, false},
		"its conditions": {func(p *v1.NodePool) { p.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded) }, false},
		"its spec":       {func(p *v1.NodePool) { p.Generation++ }, true},
		"its hash":       {func(p *v1.NodePool) { p.Annotations = map[string]string{v1.NodePoolHashAnnotationKey: "2"} }, true},
	} {
		before := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: 1}}
		after := before.DeepCopy()
		c.change(after)
		if told := poolsOfClaims().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); told != c.told {
			t.Errorf("%s: told %t, want %t", name, told, c.told)
		}
	}
}
