package armsim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// extend puts the extension billing on a machine and waits for it.
func (u *subscriber) extend(vm string) error {
	p, err := u.exts.BeginCreateOrUpdate(u.t.Context(), u.NodeResourceGroup, vm, "billing", armcompute.VirtualMachineExtension{
		Location: to.Ptr(u.Region), Tags: map[string]*string{"team": to.Ptr("blue")},
		Properties: &armcompute.VirtualMachineExtensionProperties{Publisher: to.Ptr("Microsoft.AKS"), Type: to.Ptr("Compute.AKS.Linux.Billing")},
	}, nil)
	if err == nil {
		_, err = p.PollUntilDone(u.t.Context(), nil)
	}
	return err
}

// retag replaces the tags of the extension billing and waits for it.
func (u *subscriber) retag(vm string) error {
	p, err := u.exts.BeginUpdate(u.t.Context(), u.NodeResourceGroup, vm, "billing",
		armcompute.VirtualMachineExtensionUpdate{Tags: map[string]*string{"owner": to.Ptr("web")}}, nil)
	if err == nil {
		_, err = p.PollUntilDone(u.t.Context(), nil)
	}
	return err
}

func TestExtensionTagsAreReplacedWhileVMRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		u.mustBuy("a", machine{size: "Standard_D4s_v5"})
		wantStatus(t, u.retag("a"), http.StatusNotFound)
		if err := u.extend("a"); err != nil {
			t.Fatal(err)
		}
		if err := u.retag("a"); err != nil {
			t.Fatal(err)
		}
		vm, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "a", nil)
		if err != nil || len(vm.Resources) != 1 {
			t.Fatalf("the machine shows %d extensions, %v", len(vm.Resources), err)
		}
		_, header, shown := u.raw("GET", *vm.Resources[0].ID, "2025-04-01", nil, nil)
		if shown["etag"] != nil || header.Get("ETag") != "" {
			t.Errorf("the extension shows an ETag, which Azure does not: %v %v", shown, header)
		}
		if e := vm.Resources[0]; len(e.Tags) != 1 || *e.Tags["owner"] != "web" ||
			*e.Properties.ProvisioningState != "Succeeded" || *e.Properties.Type != "Compute.AKS.Linux.Billing" {
			t.Errorf("the extension is %+v with tags %v", e.Properties, e.Tags)
		}
		if _, err := u.vms.BeginDelete(t.Context(), u.NodeResourceGroup, "a", nil); err != nil {
			t.Fatal(err)
		}
		wantError(t, u.retag("a"), "OperationNotAllowed", "not running")
		time.Sleep(10 * time.Minute)
		wantError(t, u.retag("a"), "ParentResourceNotFound", "could not be found")
	})
}

func TestFailedExtensionFailsProvisioningStateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		f := u.fault(armsim.Fault{Kind: armsim.FaultFail, Operation: "Microsoft.Compute/virtualMachines/extensions/write",
			Code: "VMExtensionProvisioningError", Message: "exit status 9"})
		u.mustBuy("a", machine{size: "Standard_D4s_v5"})
		look := func(machine, extension string, troubles int) {
			t.Helper()
			vm, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := *vm.Properties.ProvisioningState + " " + *vm.Resources[0].Properties.ProvisioningState; got != machine+" "+extension {
				t.Errorf("machine and extension are %s, want %s %s", got, machine, extension)
			}
			view, err := u.vms.InstanceView(t.Context(), u.NodeResourceGroup, "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			running, bad := false, 0
			for _, s := range append(view.Statuses, view.Extensions[0].Statuses...) {
				running = running || *s.Code == "PowerState/running"
				if *s.Level == armcompute.StatusLevelTypesError {
					bad++
				}
			}
			if !running || bad != troubles {
				t.Errorf("running %v with %d errors, want it to run with %d", running, bad, troubles)
			}
		}
		wantError(t, u.extend("a"), "VMExtensionProvisioningError", "exit status 9")
		look("Failed", "Failed", 2)
		if err := u.Server.RemoveFault(f.ID); err != nil {
			t.Fatal(err)
		}
		if err := u.extend("a"); err != nil {
			t.Error(err)
		}
		look("Succeeded", "Succeeded", 0)
	})
}
