package providertest

import (
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

func TestAMachineThatDoesNotBootSaysWhyItself(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restartAs(t, mode)
				const message = "vmssCSE exit status=50: cannot reach the API server"
				if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultNoBoot, Message: message}); err != nil {
					t.Fatal(err)
				}
				m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				got, err := w.provider.Trouble(t.Context(), "general-abc12")
				if err != nil || !strings.Contains(got, "the machine's agent says") || !strings.Contains(got, message) {
					t.Errorf("trouble %q, %v", got, err)
				}
				w.Server.ReportGuest(strings.TrimPrefix(m.ProviderID, "azure://"), "")
				if got, err := w.provider.Trouble(t.Context(), "general-none1"); got != "" || err != nil {
					t.Errorf("a claim without a machine: %q, %v", got, err)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

func TestAnExtensionThatFailedIsNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if got, err := w.provider.Trouble(t.Context(), "general-abc12"); got != "" || err != nil {
			t.Errorf("a machine in order: %q, %v", got, err)
		}
		const extension = "/extensions/cse-agent-karpenter"
		id := strings.TrimPrefix(m.ProviderID, "azure://") + extension
		if code := w.send(t, "PUT", "Microsoft.Compute/virtualMachines/aks-general-abc12"+extension, `{"location":"eastus","properties":{"publisher":"Microsoft.Azure.Extensions","type":"CustomScript"}}`); code != 201 {
			t.Fatalf("putting an extension: %d", code)
		}
		w.Server.ReportGuest(id, "Enable failed: exit status 51")
		got, err := w.provider.Trouble(t.Context(), "general-abc12")
		if want := "extension cse-agent-karpenter says ProvisioningState/failed/1: Enable failed: exit status 51"; err != nil || got != want {
			t.Errorf("trouble %q, %v, want %q", got, err, want)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}
