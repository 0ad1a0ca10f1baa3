package inplaceupdate

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

type updater struct {
	calls int
	err   error
}

func (u *updater) InPlaceHash(class *v1beta1.AKSNodeClass) string {
	return "hash of " + class.Spec.Tags["team"]
}

func (u *updater) Update(context.Context, string, *v1beta1.AKSNodeClass) error {
	u.calls++
	return u.err
}

func (u *updater) AKSMachine(providerID string) string {
	name, is := strings.CutPrefix(providerID, "aks:")
	if !is {
		return ""
	}
	return "pool/machines/" + name
}

// A NodeClaim of before nap noted its AKS machine gets the id without another update of the machine,
// and keeps the id that it has.
func TestAKSMachineIsNotedOnce(t *testing.T) {
	s := scheme.Scheme
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	for _, tt := range []struct{ name, provider, has, want string }{
		{"old", "aks:old", "", "pool/machines/old"},
		{"noted", "aks:noted", "another/machines/noted", "another/machines/noted"},
		{"plain", "vm:plain", "", ""},
	} {
		claim := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: tt.name, Annotations: map[string]string{v1beta1.AnnotationInPlaceUpdateHash: "hash of "}},
			Spec: karpv1.NodeClaimSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"},
			},
			Status: karpv1.NodeClaimStatus{ProviderID: tt.provider},
		}
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		if tt.has != "" {
			claim.Annotations[v1beta1.AnnotationAKSMachine] = tt.has
		}
		kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(claim).WithObjects(class, claim).Build()
		u := &updater{}
		if _, err := New(kube, u).Reconcile(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if got := claim.Annotations[v1beta1.AnnotationAKSMachine]; got != tt.want || u.calls > 0 {
			t.Errorf("NodeClaim %s names its machine %q, want %q; updated %d times", tt.name, got, tt.want, u.calls)
		}
	}
}

func TestMachineUpdatedOncePerChangeAndRetried(t *testing.T) {
	s := scheme.Scheme
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	class := &v1beta1.AKSNodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1beta1.AKSNodeClassSpec{Tags: map[string]string{"team": "blue"}},
	}
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "general-abc12"},
		Spec:       karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: v1beta1.Group, Kind: "AKSNodeClass", Name: "default"}},
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(claim).WithObjects(class, claim).Build()
	u := &updater{}
	c := New(kube, u)
	step := func(what string, calls int, failed bool) {
		t.Helper()
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Reconcile(t.Context(), claim); (err != nil) != failed {
			t.Errorf("%s: %v", what, err)
		}
		if u.calls != calls {
			t.Errorf("%s: the machine was updated %d times, want %d", what, u.calls, calls)
		}
	}
	step("before it is a node", 0, false)
	claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
	if err := kube.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	step("as a node", 1, false)
	step("again", 1, false)
	class.Spec.Tags["team"] = "red"
	if err := kube.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if got := c.claimsOf(t.Context(), class); len(got) != 1 || got[0].Name != claim.Name {
		t.Errorf("a changed class wakes %v", got)
	}
	u.err = errors.New("no answer")
	step("while Azure is out", 2, true)
	u.err = nil
	step("when it answers", 3, false)
	step("and again", 3, false)
}
