package cloudprovider

import (
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/armsim"
)

// fault breaks something in Azure and returns what mends it.
func (w *world) fault(t *testing.T, f armsim.Fault) (mend func()) {
	t.Helper()
	added, err := w.Server.AddFault(f)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := w.Server.RemoveFault(added.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// stored is the class as the API server has it.
func (w *world) stored(t *testing.T) *v1beta1.AKSNodeClass {
	t.Helper()
	class := &v1beta1.AKSNodeClass{}
	if err := w.kube.Get(t.Context(), types.NamespacedName{Name: w.class.Name}, class); err != nil {
		t.Fatal(err)
	}
	return class
}

// The subscription is not registered for encryption at host: the class says so, with the
// command, and Azure is asked again once in ten minutes.
func TestClassWithoutHostEncryptionFeatureIsNotReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		on := true
		w.class.Spec.Security = &v1beta1.Security{EncryptionAtHost: &on}
		w.class.Generation++
		if err := w.kube.Update(t.Context(), w.class); err != nil {
			t.Fatal(err)
		}
		w.resolve(t)
		const write = "Microsoft.Compute/virtualMachines/write"
		mend := w.fault(t, armsim.Fault{Kind: armsim.FaultError, Operation: write, Code: "InvalidParameter"})
		buy := func(name string) error {
			_, err := w.port.Create(t.Context(), claim(name, need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"),
				need(karpv1.CapacityTypeLabelKey, "on-demand")))
			return err
		}
		if err := buy("general-1"); err == nil || !strings.Contains(err.Error(), "EncryptionAtHost") {
			t.Fatalf("the refusal is told as %v", err)
		}
		notReady := func(when string) {
			t.Helper()
			class := w.stored(t)
			valid := class.StatusConditions().Get(v1beta1.ConditionValidationSucceeded)
			if !class.StatusConditions().Get(status.ConditionReady).IsFalse() || !valid.IsFalse() || valid.Reason != "EncryptionAtHostNotEnabled" ||
				!strings.Contains(valid.Message, "az feature register --namespace Microsoft.Compute --name EncryptionAtHost") {
				t.Errorf("%s: %+v", when, valid)
			}
		}
		notReady("after the refusal")
		w.resolve(t)
		notReady("after the status controller has looked")
		asked := w.Server.Stats()["calls "+write]
		if err := buy("general-2"); !karpcloud.IsNodeClassNotReadyError(err) || w.Server.Stats()["calls "+write] != asked {
			t.Errorf("a class that is not ready: %v, Azure was asked %d more times", err, w.Server.Stats()["calls "+write]-asked)
		}
		mend()
		time.Sleep(10*time.Minute + time.Second)
		w.resolve(t)
		if !w.stored(t).StatusConditions().IsTrue(status.ConditionReady) {
			t.Error("the class is not ready although the refusal is old")
		}
		if err := buy("general-3"); err != nil {
			t.Errorf("after the feature was registered: %v", err)
		}
	})
}

// Classes that do not ask for it are ready as before.
func TestHostEncryptionRefusalLeavesOtherClassesReady(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.fault(t, armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Code: "InvalidParameter"})
		_, err := w.port.Create(t.Context(), claim("general-1", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5")))
		if err == nil || !w.stored(t).StatusConditions().IsTrue(status.ConditionReady) {
			t.Errorf("%v; the class has %+v", err, w.stored(t).GetConditions())
		}
	})
}

// A lock on the node resource group, or a right that is missing, keeps a machine from being deleted:
// the claim's event says what to do, and once that is mended the next attempt succeeds.
func TestLockedMachineIsToldAndDeletedLater(t *testing.T) {
	for code, event := range map[string]string{
		"ScopeLocked": "ResourceLocked: The machine cannot be deleted and is paid for (ScopeLocked): remove the lock of the node resource " +
			"group, or narrow it: az lock list --resource-group",
		"AuthorizationFailed": "NotAuthorized: The machine cannot be deleted and is paid for (AuthorizationFailed): assign nap's roles",
	} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { undeletableFor(t, w, code, event) })
		})
	}
}

func undeletableFor(t *testing.T, w *world, code, event string) {
	bought := claim("general-1", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
	if _, err := w.port.Create(t.Context(), bought); err != nil {
		t.Fatal(err)
	}
	mend := w.fault(t, armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/delete", Code: code})
	w.events.forget()
	for range 3 { // Karpenter's retries
		if err := w.port.Delete(t.Context(), bought); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("a machine that may not be deleted: %v", err)
		}
		time.Sleep(time.Minute)
	}
	if len(w.events.all()) == 0 || !strings.HasPrefix(w.events.all()[0], event) {
		t.Errorf("the events are %q", w.events.all())
	}
	mend()
	for range 20 {
		if err := w.port.Delete(t.Context(), bought); karpcloud.IsNodeClaimNotFoundError(err) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
	}
	t.Error("the machine is still there after it could be deleted")
}
