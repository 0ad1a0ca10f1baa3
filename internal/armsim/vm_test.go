package armsim_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// recorder is an observer that notes what it is told.
type recorder struct {
	mu sync.Mutex
	heard
}

type heard struct {
	booted []armsim.Machine
	warned []string
	gone   []string
}

func (w *recorder) Booted(m armsim.Machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.booted = append(w.booted, m)
}

func (w *recorder) EvictionNotice(id string, _ time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warned = append(w.warned, id)
}

func (w *recorder) Gone(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = append(w.gone, id)
}

// soFar is what the recorder has heard until now.
func (w *recorder) soFar() heard {
	w.mu.Lock()
	defer w.mu.Unlock()
	return heard{slices.Clone(w.booted), slices.Clone(w.warned), slices.Clone(w.gone)}
}

func TestVMLifecycleLeavesNoResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		seen := &recorder{}
		u.Server.Observe(seen)

		start := time.Now()
		vm := u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
		if took := time.Since(start); took < 12*time.Second || took > 4*time.Minute {
			t.Errorf("creation took %s, want seconds to minutes", took)
		}
		if got := *vm.Properties.ProvisioningState; got != "Succeeded" {
			t.Errorf("provisioning state %s", got)
		}
		if vm.Properties.OSProfile.CustomData != nil {
			t.Error("custom data is shown, which Azure never does")
		}
		if len(seen.soFar().booted) != 0 {
			t.Fatal("booted before its creation ended")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(seen.soFar().booted) != 1 {
			t.Fatalf("%d machines booted, want 1", len(seen.soFar().booted))
		}
		m := seen.soFar().booted[0]
		m.VMID, m.CreatedAt, m.BootedAt, m.PrivateIP = "", time.Time{}, time.Time{}, ""
		want := armsim.Machine{
			ID: *vm.ID, Name: "aks-a", ComputerName: "aks-a", Size: "Standard_D4s_v5", VCPUs: 4, MemoryBytes: 16 << 30, Arch: "amd64",
			MaxDataDisks: 8, OSDiskGB: 128, Region: "eastus", Zone: "1", Priority: "Regular", CustomData: []byte("#!/bin/bash\n# aks-a"),
			Image: gen2Image, Tags: map[string]string{"karpenter.sh_nodepool": "default"},
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("machine (-want +got):\n%s", diff)
		}
		if inv := u.Server.Leaks(); len(inv.VMs) != 1 || len(inv.NICs) != 1 || len(inv.Disks) != 1 || len(inv.OrphanNICs) != 0 {
			t.Errorf("inventory while it runs: %+v", inv)
		}

		if err := u.sell("aks-a"); err != nil {
			t.Fatal(err)
		}
		if !u.Server.Leaks().Empty() {
			t.Errorf("left behind: %+v", u.Server.Leaks())
		}
		if !slices.Equal(seen.soFar().gone, []string{*vm.ID}) {
			t.Errorf("gone %v", seen.soFar().gone)
		}
		_, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "aks-a", nil)
		wantError(t, err, "ResourceNotFound", "was not found")
	})
}

func TestRepeatedPutOfVMChangesNothing(t *testing.T) {
	u := subscribe(t)
	first := u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	second := u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	if *first.Properties.VMID != *second.Properties.VMID {
		t.Error("the machine was replaced")
	}
	if used, _ := u.usage("cores"); used != 4 {
		t.Errorf("%d cores in use, want 4", used)
	}
}

func TestPropertyChangeNotAllowed(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	for property, m := range map[string]machine{
		"zones":                  {size: "Standard_D4s_v5", zone: "2"},
		"hardwareProfile.vmSize": {size: "Standard_D8s_v5", zone: "1"},
		"priority":               {size: "Standard_D4s_v5", zone: "1", spot: true},
		"osProfile.customData": {
			size: "Standard_D4s_v5", zone: "1", change: func(vm *armcompute.VirtualMachine) { vm.Properties.OSProfile.CustomData = to.Ptr("bmV3") },
		},
		"osProfile.computerName": {
			size: "Standard_D4s_v5", zone: "1", change: func(vm *armcompute.VirtualMachine) { vm.Properties.OSProfile.ComputerName = to.Ptr("b") },
		},
		"storageProfile.osDisk.name": {
			size: "Standard_D4s_v5", zone: "1",
			change: func(vm *armcompute.VirtualMachine) { vm.Properties.StorageProfile.OSDisk.Name = to.Ptr("b") },
		},
	} {
		_, err := u.begin("aks-a", m)
		wantError(t, err, "PropertyChangeNotAllowed", property)
		wantStatus(t, err, http.StatusConflict)
	}
}

func TestIfNoneMatchRefusesExistingVM(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	existing, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "aks-a", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.vms.BeginCreateOrUpdate(t.Context(), u.NodeResourceGroup, "aks-a", existing.VirtualMachine,
		&armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")})
	wantError(t, err, "PreconditionFailed", "aks-a exists already")
	wantStatus(t, err, http.StatusPreconditionFailed)
}

func TestVMTagsAndIdentitiesChangeInPlace(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	p, err := u.vms.BeginUpdate(t.Context(), u.NodeResourceGroup, "aks-a", armcompute.VirtualMachineUpdate{
		Tags: map[string]*string{"team": to.Ptr("blue")},
		Identity: &armcompute.VirtualMachineIdentity{Type: to.Ptr(armcompute.ResourceIdentityTypeUserAssigned),
			UserAssignedIdentities: map[string]*armcompute.UserAssignedIdentitiesValue{"/subscriptions/x/id": {}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.PollUntilDone(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "aks-a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tags) != 1 || *got.Tags["team"] != "blue" || len(got.Identity.UserAssignedIdentities) != 1 {
		t.Errorf("tags %v, identity %v", got.Tags, got.Identity)
	}
}

func TestVMDeleteOptions(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) {
		vm.Properties.StorageProfile.OSDisk.DeleteOption = to.Ptr(armcompute.DiskDeleteOptionTypesDetach)
		vm.Properties.NetworkProfile.NetworkInterfaces[0].Properties.DeleteOption = to.Ptr(armcompute.DeleteOptionsDetach)
	}})
	if err := u.sell("aks-a"); err != nil {
		t.Fatal(err)
	}
	inv := u.Server.Leaks()
	if len(inv.VMs) != 0 || len(inv.OrphanNICs) != 1 || len(inv.OrphanDisks) != 1 {
		t.Errorf("inventory %+v, want one orphaned interface and disk", inv)
	}
}

func TestVMDeleteDuringCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		p, err := u.begin("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := u.sell("aks-a"); err != nil {
			t.Fatal(err)
		}
		_, err = p.PollUntilDone(t.Context(), nil)
		wantError(t, err, "OperationPreempted", "preempted")
		if !u.Server.Leaks().Empty() {
			t.Errorf("left behind: %+v", u.Server.Leaks())
		}
	})
}

func TestExtensionsReachMachineWithSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		seen := &recorder{}
		u.Server.Observe(seen)
		u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
		p, err := u.exts.BeginCreateOrUpdate(t.Context(), u.NodeResourceGroup, "aks-a", "cse-agent-karpenter", armcompute.VirtualMachineExtension{
			Location: to.Ptr(u.Region),
			Properties: &armcompute.VirtualMachineExtensionProperties{
				Publisher: to.Ptr("Microsoft.Azure.Extensions"), Type: to.Ptr("CustomScript"), TypeHandlerVersion: to.Ptr("2.0"),
				ProtectedSettings: map[string]any{"commandToExecute": "/opt/azure/containers/aks-node-controller provision-wait"},
			},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ext, err := p.PollUntilDone(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if *ext.Properties.ProvisioningState != "Succeeded" || ext.Properties.ProtectedSettings != nil {
			t.Errorf("extension %s, protected settings %v", *ext.Properties.ProvisioningState, ext.Properties.ProtectedSettings)
		}
		vm, err := u.vms.Get(t.Context(), u.NodeResourceGroup, "aks-a", nil)
		if err != nil || len(vm.Resources) != 1 || *vm.Resources[0].Name != "cse-agent-karpenter" ||
			*vm.Resources[0].Properties.ProvisioningState != "Succeeded" {
			t.Errorf("the machine shows %v (%v), want its extension", vm.Resources, err)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		got := seen.soFar().booted[0].Extensions
		if len(got) != 1 || got[0].Type != "CustomScript" || got[0].ProtectedSettings["commandToExecute"] != "/opt/azure/containers/aks-node-controller provision-wait" {
			t.Errorf("extensions %+v", got)
		}
	})
}

func TestObserveReportsRunningMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t)
		u.mustBuy("aks-b", machine{size: "Standard_D4s_v5"})
		u.mustBuy("aks-a", machine{size: "Standard_D4s_v5"})
		synctest.Wait()
		seen := &recorder{}
		u.Server.Observe(seen)
		var names []string
		for _, m := range seen.soFar().booted {
			names = append(names, m.Name)
		}
		if len(names) != 2 {
			t.Errorf("heard of %v, want both", names)
		}
	})
}

func TestInstanceViewShowsAgentOfBootedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t)
		u.mustBuy("aks-a", machine{size: "Standard_D4s_v5"})
		synctest.Wait()
		agent := func() (string, string) {
			view, err := u.vms.InstanceView(t.Context(), u.NodeResourceGroup, "aks-a", nil)
			if err != nil {
				t.Fatal(err)
			}
			s := view.VMAgent.Statuses[0]
			if s.Message == nil {
				return *s.DisplayStatus, ""
			}
			return *s.DisplayStatus, *s.Message
		}
		if status, message := agent(); status != "Ready" || message != "" {
			t.Errorf("a booted machine: %s %q", status, message)
		}
	})
}
