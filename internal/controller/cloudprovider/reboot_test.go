package cloudprovider

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpcloud "sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

func TestRebootRestartsTheMachine(t *testing.T) {
	for kind, change := range map[string]func(*world, *testing.T){
		"plain": func(*world, *testing.T) {},
		"AKS":   func(w *world, t *testing.T) { w.restart(t, w.aksMachines) },
	} {
		t.Run(kind, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				change(w, t)
				bought := claim("general-1", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
				made, err := w.port.Create(t.Context(), bought)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				if err := w.port.Reboot(t.Context(), bought, "1"); err != nil {
					t.Fatalf("a reboot: %v", err)
				}
				time.Sleep(10 * time.Minute)
				booted, restarted := 0, 0
				for _, e := range w.Server.Audit(0) {
					if !strings.HasSuffix(made.Status.ProviderID, e.Resource) && !strings.EqualFold(made.Status.ProviderID, "azure://"+e.Resource) {
						continue
					}
					switch e.Action {
					case "vm.booted":
						booted++
					case "vm.restarted":
						restarted++
					}
				}
				if booted != 2 || restarted != 1 {
					t.Errorf("the machine has booted %d times and was restarted %d times, want 2 and 1", booted, restarted)
				}
				if still, err := w.port.Get(t.Context(), made.Status.ProviderID); err != nil || still.Name != bought.Name {
					t.Errorf("after the reboot there is %v, %v", still, err)
				}
			})
		})
	}
}

func TestRebootThatAzureRefusesForGoodFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.port.Reboot(t.Context(), claim("general-9"), "1"); !karpcloud.IsNodeClaimNotFoundError(err) {
			t.Errorf("a reboot of no machine: %v", err)
		}
		bought := claim("general-1", need(corev1.LabelInstanceTypeStable, "Standard_D4s_v5"), need(karpv1.CapacityTypeLabelKey, "on-demand"))
		if _, err := w.port.Create(t.Context(), bought); err != nil {
			t.Fatal(err)
		}
		mend := w.fault(t, armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/restart/action", Code: "ScopeLocked"})
		w.events.forget()
		if err := w.port.Reboot(t.Context(), bought, "1"); !karpcloud.IsNodeRebootFailedError(err) {
			t.Errorf("a reboot of a locked machine: %v, want that it has failed for good", err)
		}
		if len(w.events.all()) != 1 || !strings.HasPrefix(w.events.all()[0], "ResourceLocked: ") {
			t.Errorf("the events are %q, want what to do", w.events.all())
		}
		mend()
		mend = w.fault(t, armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/restart/action",
			Status: http.StatusConflict, Code: "AllocationFailed", Message: "No capacity."})
		if err := w.port.Reboot(t.Context(), bought, "1"); err == nil || karpcloud.IsNodeRebootFailedError(err) {
			t.Errorf("a reboot without capacity, against which nobody can do anything: %v, want that it is tried again", err)
		}
		mend()
		mend = w.fault(t, armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/restart/action", Code: "InternalServerError"})
		if err := w.port.Reboot(t.Context(), bought, "1"); err == nil || karpcloud.IsNodeRebootFailedError(err) {
			t.Errorf("a reboot while Azure is out: %v, want that it is tried again", err)
		}
		mend()
		if err := w.port.Reboot(t.Context(), bought, "1"); err != nil {
			t.Errorf("a reboot after all: %v", err)
		}
	})
}
