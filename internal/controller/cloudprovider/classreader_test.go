package cloudprovider

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// A class that is being deleted buys nothing more, and no other kind stands for one.
func TestOnlyClassesThatStayBuy(t *testing.T) {
	stays := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "stays"}}
	goes := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "goes", Finalizers: []string{"test/hold"}}}
	kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(stays, goes).Build()
	if err := kube.Delete(t.Context(), goes); err != nil {
		t.Fatal(err)
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(goes), goes); err != nil || goes.DeletionTimestamp.IsZero() {
		t.Fatalf("the class should be there and being deleted: %v", err)
	}
	r := classReader{kube}
	ref := func(group, kind, name string) *karpv1.NodeClassReference {
		return &karpv1.NodeClassReference{Group: group, Kind: kind, Name: name}
	}
	if got, err := r.get(t.Context(), ref(v1beta1.Group, "AKSNodeClass", "stays")); err != nil || got.Name != "stays" {
		t.Errorf("%v, %v", got, err)
	}
	for _, gone := range []string{"goes", "never-was"} {
		if _, err := r.get(t.Context(), ref(v1beta1.Group, "AKSNodeClass", gone)); !apierrors.IsNotFound(err) {
			t.Errorf("class %s: %v, want not found", gone, err)
		}
	}
	for name, wrong := range map[string]*karpv1.NodeClassReference{
		"none": nil, "group": ref("karpenter.k8s.aws", "AKSNodeClass", "stays"), "kind": ref(v1beta1.Group, "EC2NodeClass", "stays"),
	} {
		if _, err := r.get(t.Context(), wrong); err == nil || apierrors.IsNotFound(err) {
			t.Errorf("wrong reference (%s): %v, want an error that says what is wrong", name, err)
		}
	}
}
