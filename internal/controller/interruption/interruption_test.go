package interruption

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/events"
)

type told []string

func (r *told) Publish(list ...events.Event) {
	for _, e := range list {
		*r = append(*r, fmt.Sprintf("%s %T", e.Reason, e.InvolvedObject))
	}
}

func TestInterruptedMachinesAreDeletedAtOnce(t *testing.T) {
	var objects []client.Object
	for i := range 10 {
		id := fmt.Sprintf("azure:///vm-%d", i)
		status := corev1.ConditionTrue
		if i == 9 {
			status = corev1.ConditionFalse
		}
		objects = append(objects,
			&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i)}, Status: karpv1.NodeClaimStatus{ProviderID: id}},
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{
					corev1.LabelInstanceTypeStable: "Standard_D4s_v5", corev1.LabelTopologyZone: "eastus-1",
				}},
				Spec:   corev1.NodeSpec{ProviderID: id},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: Condition, Status: status}}},
			})
	}
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&karpv1.NodeClaim{}, "status.providerID",
			func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).Build()
	recorder := &told{}
	var evicted []string
	c := New(kube, recorder, func(size, zone string) { evicted = append(evicted, size+" "+zone) })
	for _, o := range objects {
		if node, ok := o.(*corev1.Node); ok {
			for range 2 { // the second time there is nothing left to do
				if _, err := c.Reconcile(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var left karpv1.NodeClaimList
	if err := kube.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].Name != "claim-9" {
		t.Errorf("left are %d claims, want the one that is not taken back", len(left.Items))
	}
	if len(evicted) != 9 || evicted[0] != "Standard_D4s_v5 eastus-1" {
		t.Errorf("told of %q", evicted)
	}
	if len(*recorder) != 18 || !slices.Contains(*recorder, "SpotEviction *v1.Node") ||
		!slices.Contains(*recorder, "SpotEviction *v1.NodeClaim") {
		t.Errorf("events %q", *recorder)
	}
}
