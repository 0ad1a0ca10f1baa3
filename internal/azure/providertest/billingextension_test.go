package providertest

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

const (
	billing       = "Microsoft.Compute/virtualMachines/aks-general-abc12/extensions/computeAksLinuxBilling"
	extensionCall = "calls Microsoft.Compute/virtualMachines/extensions/write"
)

// inPublicCloud runs a test in the public cloud, whose machines are marked for
// billing by an extension.
func inPublicCloud(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.Cloud.Environment, w.config.Cloud.Name = nil, config.CloudPublic
		w.start(t)
		test(t, w)
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

// buyBilled buys the machine of general-abc12 and waits for the extension.
func (w *world) buyBilled(t *testing.T) {
	t.Helper()
	if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
		t.Fatal(err)
	}
	time.Sleep(6 * time.Minute)
}

// breaking adds a fault and returns how to mend it.
func (w *world) breaking(t *testing.T, f armsim.Fault) func() {
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

func TestBillingExtensionTagsFollowVM(t *testing.T) {
	inPublicCloud(t, func(t *testing.T, w *world) {
		counted := &changes{RoundTripper: w.HTTP.Transport, n: map[string]int{}}
		w.stop()
		w.HTTP = &http.Client{Transport: counted}
		w.start(t)
		w.buyBilled(t)
		if got := w.get(t, billing); !strings.Contains(got, `"type":"Compute.AKS.Linux.Billing"`) ||
			!strings.Contains(got, `"karpenter.sh_nodepool":"general"`) {
			t.Errorf("the extension is %s", got)
		}
		w.class.Tags = map[string]string{"cost/center": "42"}
		for range 2 { // the second time there is nothing left to do
			if err := w.provider.Update(t.Context(), "general-abc12", w.class); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if got, want := counted.take(), map[string]int{"virtualmachines": 1, "networkinterfaces": 1, "extensions": 2}; !maps.Equal(got, want) {
			t.Errorf("changing calls %v, want %v", got, want)
		}
		if got := w.get(t, billing); !strings.Contains(got, `"cost_center":"42"`) || !strings.Contains(got, `"provisioningState":"Succeeded"`) {
			t.Errorf("the extension is %s", got)
		}
	})
}

func TestBillingExtensionTagUpdateRetriedAfterError(t *testing.T) {
	inPublicCloud(t, func(t *testing.T, w *world) {
		w.buyBilled(t)
		mend := w.breaking(t, armsim.Fault{Kind: armsim.FaultError, Operation: extensionWrite, Resource: "computeAksLinuxBilling",
			Status: http.StatusConflict, Code: "Conflict", Message: "The extension is being changed."})
		w.class.Tags = map[string]string{"cost/center": "42"}
		err := w.provider.Update(t.Context(), "general-abc12", w.class)
		if err == nil || !strings.Contains(err.Error(), "update extension computeAksLinuxBilling of virtual machine aks-general-abc12") ||
			!strings.Contains(err.Error(), "being changed") {
			t.Errorf("updating: %v", err)
		}
		for _, done := range []string{"Microsoft.Compute/virtualMachines/aks-general-abc12",
			"Microsoft.Network/networkInterfaces/aks-general-abc12"} {
			if got := w.get(t, done); !strings.Contains(got, `"cost_center":"42"`) {
				t.Errorf("%s waits for the extension: %s", done, got)
			}
		}
		mend()
		if err := w.provider.Update(t.Context(), "general-abc12", w.class); err != nil {
			t.Fatal(err)
		}
		if got := w.get(t, billing); !strings.Contains(got, `"cost_center":"42"`) {
			t.Errorf("the extension is %s", got)
		}
	})
}

func TestBillingExtensionRefusedIsRetriedAfterRestart(t *testing.T) {
	inPublicCloud(t, func(t *testing.T, w *world) {
		mend := w.breaking(t, armsim.Fault{
			Kind: armsim.FaultError, Operation: extensionWrite, Resource: "computeAksLinuxBilling", Status: http.StatusConflict, Code: "Conflict",
		})
		w.buyBilled(t)
		if w.Server.Stats()[extensionCall] == 0 {
			t.Error("the extension was not asked for")
		}
		w.stop()
		mend()
		w.start(t) // another process, which knows only what Azure says
		time.Sleep(time.Minute)
		if got := w.get(t, billing); !strings.Contains(got, `"provisioningState":"Succeeded"`) {
			t.Errorf("the extension is %s", got)
		}
		if len(w.failed) != 0 {
			t.Errorf("reported as failed: %v", w.failed)
		}
	})
}

func TestBillingExtensionFailureKeepsVMAndRetries(t *testing.T) {
	inPublicCloud(t, func(t *testing.T, w *world) {
		mend := w.breaking(t, armsim.Fault{Kind: armsim.FaultFail, Operation: extensionWrite, Resource: "computeAksLinuxBilling",
			Code: "VMExtensionProvisioningError", Message: "exit status 9"})
		w.buyBilled(t)
		if got := w.get(t, billing); !strings.Contains(got, `"provisioningState":"Failed"`) {
			t.Errorf("the extension is %s", got)
		}
		if f, _ := w.bootFailure(t, launch.Machine{Claim: "general-abc12"}, time.Minute); f.Text != "" {
			t.Errorf("the billing extension failed the boot: %+v", f)
		}
		w.stop()
		w.start(t) // another process, which does not know that the claim has its machine
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Errorf("launching again: %v", err)
		}
		mend()
		for range 2 { // the second time there is nothing left to do
			if removed, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12")); err != nil || len(removed) != 0 {
				t.Errorf("removed %v, %v, want none", removed, err)
			}
			time.Sleep(time.Minute)
		}
		if got := w.get(t, billing); !strings.Contains(got, `"provisioningState":"Succeeded"`) {
			t.Errorf("the extension is %s", got)
		}
		if n := w.Server.Stats()[extensionCall]; n != 3 || len(w.failed) != 0 || w.Server.Stats()["vm.accepted"] != 1 {
			t.Errorf("extensions were put %d times, failed %v, %d machines made; want 3, of which billing 2, none, one", n, w.failed, w.Server.Stats()["vm.accepted"])
		}
	})
}
