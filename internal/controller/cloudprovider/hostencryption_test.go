package cloudprovider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

// encrypted is a class that asks for encryption at host, and Azure's refusal of it.
func encrypted() (*v1beta1.AKSNodeClass, *unavailable.Failure) {
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Security = &v1beta1.Security{EncryptionAtHost: ptr(true)}
	return class, unavailable.NewFailure("InvalidParameter", "The property 'securityProfile.encryptionAtHost' is not valid because the "+
		"'Microsoft.Compute/EncryptionAtHost' feature is not enabled for this subscription.", nil)
}

// A refusal is believed for a while, and of classes that ask for what was refused.
func TestHostEncryptionRefusalIsBelievedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hostEncryption
		class, refusal := encrypted()
		time.Sleep(time.Second)
		if h.failure(class) != nil {
			t.Error("a class is not ready before anything was refused")
		}
		h.note(refusal)
		if h.failure(class) == nil || h.failure(&v1beta1.AKSNodeClass{}) != nil {
			t.Error("want the class not ready that asks for it, and no other")
		}
		time.Sleep(unavailable.RestTTL)
		if h.failure(class) != nil {
			t.Errorf("the refusal is believed after %s", unavailable.RestTTL)
		}
	})
}

// The status controller writes what could not be written: a class that was changed or is
// gone meanwhile is no error, no answer is one.
func TestHostEncryptionRefusalIsWrittenOrLeftToStatusController(t *testing.T) {
	resource := schema.GroupResource{Resource: "aksnodeclasses"}
	for name, c := range map[string]struct {
		answer error
		fails  bool
	}{
		"written":   {nil, false},
		"changed":   {apierrors.NewConflict(resource, "default", errors.New("changed")), false},
		"gone":      {apierrors.NewNotFound(resource, "default"), false},
		"no answer": {errors.New("timeout"), true},
	} {
		class, refusal := encrypted()
		kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return c.answer
			},
		}).Build()
		var finder ClassFinder
		if err := finder.hostEncryptionRefused(t.Context(), kube, class, refusal); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Azure may refuse after it has accepted: the class says so then too, and the claim ends.
// A class that is gone by then keeps no claim.
func TestLateHostEncryptionRefusalIsSaidByTheClass(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, refusal := encrypted()
		w.class.Spec.Security = &v1beta1.Security{EncryptionAtHost: ptr(true)}
		if err := w.kube.Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		fail := func(name string) {
			t.Helper()
			c := claim(name)
			if err := w.kube.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if _, err := w.port.failedLate(t.Context(), name, refusal); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := w.kube.Get(t.Context(), client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
		fail("general-a")
		valid := w.stored(t).StatusConditions().Get(v1beta1.ConditionValidationSucceeded)
		if valid.Reason != string(unavailable.HostEncryptionOff) {
			t.Errorf("the class says %+v", valid)
		}
		if err := w.kube.Delete(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		fail("general-b")
		if _, err := w.port.failedLate(t.Context(), "general-c", refusal); err != nil {
			t.Errorf("a claim that is gone: %v", err)
		}
	})
}

// While the class cannot be told, the claim stays: what was refused would be bought again.
func TestClaimStaysUntilItsClassSaysWhy(t *testing.T) {
	class, refusal := encrypted()
	kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(class, claim("general-a")).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("timeout")
		},
	}).Build()
	p := &Port{kube: kube, classes: classReader{kube}, Classes: &ClassFinder{}, recorder: &laterRecorder{}}
	if _, err := p.failedLate(t.Context(), "general-a", refusal); err == nil {
		t.Error("the class was told nothing, and nobody hears of it")
	}
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "general-a"}, claim("general-a")); err != nil {
		t.Errorf("the claim: %v", err)
	}
}
