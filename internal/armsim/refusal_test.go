package armsim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// The ways in which Azure says no to a machine, one row a way. The rows carry
// the codes and the words by which clients tell them apart.
func TestVMRefusals(t *testing.T) {
	ultra := func(vm *armcompute.VirtualMachine) {
		vm.Properties.AdditionalCapabilities = &armcompute.AdditionalCapabilities{UltraSSDEnabled: to.Ptr(true)}
	}
	quota := func(name string, limit int64) func(*armsim.Config) {
		return func(c *armsim.Config) { c.Quota = map[string]int64{name: limit} }
	}
	for name, tc := range map[string]struct {
		config  func(*armsim.Config)
		fault   *armsim.Fault
		buy     machine
		async   bool // found out during the operation
		code    string
		message string
		status  int
	}{
		"LowPriorityCores": {
			config: quota("lowPriorityCores", 3), buy: machine{size: "Standard_D4s_v5", zone: "1", spot: true},
			code: "OperationNotAllowed", message: "exceeding approved LowPriorityCores quota", status: 409,
		},
		"Family Cores quota": {
			config: quota("standardDSv5Family", 3), buy: machine{size: "Standard_D4s_v5", zone: "1"},
			code: "OperationNotAllowed", message: "standardDSv5Family Cores quota. Additional details - Deployment Model: " +
				"Resource Manager, Location: eastus, Current Limit: 3, Current Usage: 0, Additional Required: 4, (Minimum) New " +
				"Limit Required: 4", status: 409,
		},
		"Family Cores quota of zero": {
			config: quota("standardDSv5Family", 0), buy: machine{size: "Standard_D4s_v5", zone: "1"},
			code: "OperationNotAllowed", message: "Current Limit: 0", status: 409,
		},
		"Total Regional Cores quota": {
			config: quota("cores", 3), buy: machine{size: "Standard_D4s_v5", zone: "1"},
			code: "OperationNotAllowed", message: "exceeding approved Total Regional Cores quota", status: 409,
		},
		"SkuNotAvailable by restriction": {
			config: func(c *armsim.Config) { c.Restrictions = []armsim.Restriction{{Size: "Standard_D4s_v5"}} },
			buy:    machine{size: "Standard_D4s_v5", zone: "1"},
			code:   "SkuNotAvailable", message: "Capacity Restrictions: Standard_D4s_v5", status: 409,
		},
		"SkuNotAvailable for spot": {
			fault: &armsim.Fault{Kind: armsim.FaultCapacity, Priority: "Spot"}, buy: machine{size: "Standard_D4s_v5", zone: "1", spot: true},
			code: "SkuNotAvailable", message: "currently not available in location 'eastus'", status: 409,
		},
		"ZonalAllocationFailed": {
			fault: &armsim.Fault{Kind: armsim.FaultCapacity, Zone: "1"}, buy: machine{size: "Standard_D4s_v5", zone: "1"},
			async: true, code: "ZonalAllocationFailed", message: "VM size in this zone",
		},
		"AllocationFailed": {
			fault: &armsim.Fault{Kind: armsim.FaultCapacity}, buy: machine{size: "Standard_D4s_v5"},
			async: true, code: "AllocationFailed", message: "VM size in this region",
		},
		"OverconstrainedZonalAllocationRequest": {
			fault: &armsim.Fault{Kind: armsim.FaultCapacity}, buy: machine{size: "Standard_D4s_v5", zone: "1", change: ultra},
			async: true, code: "OverconstrainedZonalAllocationRequest", message: "condition is too restrictive",
		},
		"OverconstrainedAllocationRequest": {
			fault: &armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedAllocationRequest"}, buy: machine{size: "Standard_D4s_v5"},
			async: true, code: "OverconstrainedAllocationRequest", message: "condition is too restrictive",
		},
		"capacity table": {
			config: func(c *armsim.Config) {
				c.Capacity = []armsim.CapacityRule{{Size: "Standard_D*s_v5", Zone: "1", Machines: 0}}
			},
			buy:   machine{size: "Standard_D4s_v5", zone: "1"},
			async: true, code: "ZonalAllocationFailed", message: "Allocation failed",
		},
		"OSProvisioningTimedOut": {
			fault: &armsim.Fault{
				Kind: armsim.FaultFail, Code: "OSProvisioningTimedOut", Message: "OS Provisioning did not finish in the allotted time.",
			},
			buy:   machine{size: "Standard_D4s_v5"},
			async: true, code: "OSProvisioningTimedOut", message: "allotted time",
		},
		"RequestDisallowedByPolicy": {
			fault: &armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write",
				Status: 403, Code: "RequestDisallowedByPolicy", Message: "Resource was disallowed by policy."},
			buy: machine{size: "Standard_D4s_v5"}, code: "RequestDisallowedByPolicy", message: "disallowed by policy", status: 403,
		},
		"VMCannotFitEphemeralOSDisk": {
			buy: machine{size: "Standard_D4pds_v6", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.StorageProfile.DiskControllerType = to.Ptr(armcompute.DiskControllerTypesNVMe)
				vm.Properties.StorageProfile.ImageReference.CommunityGalleryImageID = to.Ptr(
					"/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2arm64containerd/versions/202606.09.0")
				vm.Properties.StorageProfile.OSDisk.DiffDiskSettings = &armcompute.DiffDiskSettings{
					Option: to.Ptr(armcompute.DiffDiskOptionsLocal), Placement: to.Ptr(armcompute.DiffDiskPlacementCacheDisk)}
			}},
			code:    "VMCannotFitEphemeralOSDisk",
			message: "greater than 0 GB is not allowed for VM size Standard_D4pds_v6 when the DiffDiskPlacement is CacheDisk", status: 409,
		},
		"SCSI on an NVMe-only size": {
			buy: machine{size: "Standard_D4s_v6", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.StorageProfile.DiskControllerType = to.Ptr(armcompute.DiskControllerTypesSCSI)
			}},
			code: "InvalidParameter", message: "disk controller types", status: 400,
		},
		"no controller on an NVMe-only size": {
			buy:  machine{size: "Standard_D4s_v6"},
			code: "InvalidParameter", message: "disk controller types", status: 400,
		},
		"generation 1 image on a generation 2 size": {
			buy: machine{size: "Standard_D4s_v6", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.StorageProfile.DiskControllerType = to.Ptr(armcompute.DiskControllerTypesNVMe)
				vm.Properties.StorageProfile.ImageReference.CommunityGalleryImageID = to.Ptr(
					"/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204containerd/versions/202606.09.0")
			}},
			code: "BadRequest", message: "cannot boot Hypervisor Generation '1'", status: 400,
		},
		"amd64 image on an arm64 size": {
			buy:  machine{size: "Standard_D4ps_v5"},
			code: "InvalidParameter", message: "CPU Architecture of 'Arm64'", status: 400,
		},
		"image that does not exist": {
			buy: machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.StorageProfile.ImageReference.CommunityGalleryImageID = to.Ptr(gen2Image + "9")
			}},
			code: "GalleryImageNotFound", message: "is not available in eastus region", status: 404,
		},
		"size that does not exist": {
			buy: machine{size: "Standard_X4"}, code: "InvalidParameter",
			message: "The value Standard_X4 provided for the VM size is not valid", status: 400,
		},
		"burstable as spot": {
			buy: machine{size: "Standard_B4as_v2", spot: true}, code: "InvalidParameter", message: "does not support Azure Spot", status: 400,
		},
		"trusted launch where it is disabled": {
			buy: machine{size: "Standard_NC6s_v3", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.SecurityProfile = &armcompute.SecurityProfile{SecurityType: to.Ptr(armcompute.SecurityTypesTrustedLaunch)}
			}},
			code: "BadRequest", message: "'TrustedLaunch' security type", status: 400,
		},
		"tag name with a slash": {
			buy: machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) {
				vm.Tags["karpenter.sh/nodepool"] = to.Ptr("default")
			}},
			code: "InvalidTagNameCharacters", message: "reserved characters", status: 400,
		},
		"two zones": {
			buy:  machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) { vm.Zones = to.SliceOfPtrs("1", "2") }},
			code: "InvalidParameter", message: "is not supported", status: 400,
		},
		"custom data that is not base64": {
			buy: machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.OSProfile.CustomData = to.Ptr("#!/bin/bash")
			}},
			code: "InvalidParameter", message: "Base64", status: 400,
		},
		"network interface that does not exist": {
			buy: machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) {
				vm.Properties.NetworkProfile.NetworkInterfaces[0].ID = to.Ptr(*vm.Properties.NetworkProfile.NetworkInterfaces[0].ID + "x")
			}},
			code: "InvalidResourceReference", message: "was not found", status: 400,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := subscribe(t, armtest.Realistic, func(c *armsim.Config) {
					if tc.config != nil {
						tc.config(c)
					}
				})
				if tc.fault != nil {
					u.fault(*tc.fault)
				}
				p, err := u.begin("aks-a", tc.buy)
				if tc.async {
					if err != nil {
						t.Fatalf("refused at once: %v", err)
					}
					if _, err = p.PollUntilDone(t.Context(), nil); err == nil {
						t.Fatal("it was created")
					}
				} else {
					wantStatus(t, err, tc.status)
				}
				wantError(t, err, tc.code, tc.message)
				if used, _ := u.usage("cores"); used != 0 {
					t.Errorf("a machine that was refused uses %d cores", used)
				}
				if inv := u.Server.Leaks(); tc.async != (len(inv.VMs) == 1) || len(inv.Disks) != 0 {
					t.Errorf("inventory %+v; only what fails during the operation leaves a failed machine", inv)
				}
			})
		})
	}
}

func TestFailedVMIsDeletedWithInterface(t *testing.T) {
	u := subscribe(t)
	u.fault(armsim.Fault{Kind: armsim.FaultCapacity})
	if _, err := u.buy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"}); err == nil {
		t.Fatal("it was created")
	}
	view, err := u.vms.InstanceView(t.Context(), u.NodeResourceGroup, "aks-a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := *view.Statuses[0].Code; got != "ProvisioningState/failed/ZonalAllocationFailed" {
		t.Errorf("status %s", got)
	}
	if err := u.sell("aks-a"); err != nil {
		t.Fatal(err)
	}
	if !u.Server.Leaks().Empty() {
		t.Errorf("left behind: %+v", u.Server.Leaks())
	}
}

func TestRepeatedPutOfFailedVMTriesCapacityAgain(t *testing.T) {
	u := subscribe(t)
	f := u.fault(armsim.Fault{Kind: armsim.FaultCapacity})
	for range 2 {
		_, err := u.buy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
		wantError(t, err, "ZonalAllocationFailed", "")
	}
	if err := u.Server.RemoveFault(f.ID); err != nil {
		t.Fatal(err)
	}
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	if used, _ := u.usage("cores"); used != 4 {
		t.Errorf("%d cores in use, want 4", used)
	}
}

func TestNicReservedForAnotherVm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		u.fault(armsim.Fault{Kind: armsim.FaultCapacity, Priority: "Spot"})
		_, err := u.begin("aks-a", machine{size: "Standard_D4s_v5", zone: "1", spot: true})
		wantError(t, err, "SkuNotAvailable", "")
		_, err = u.nics.BeginDelete(t.Context(), u.NodeResourceGroup, "aks-a", nil)
		wantError(t, err, "NicReservedForAnotherVm", "180 seconds")

		other := u.body("aks-b", machine{size: "Standard_D4s_v5", zone: "1", change: func(vm *armcompute.VirtualMachine) {
			vm.Properties.NetworkProfile.NetworkInterfaces[0].ID = to.Ptr(u.nicID("aks-a"))
		}})
		_, err = u.vms.BeginCreateOrUpdate(t.Context(), u.NodeResourceGroup, "aks-b", other, nil)
		wantError(t, err, "NicReservedForAnotherVm", "aks-a")
		if _, err := u.begin("aks-a", machine{size: "Standard_D4s_v5", zone: "1"}); err != nil {
			t.Errorf("the machine that it is reserved for may not have it: %v", err)
		}

		if _, err := u.nic("aks-c"); err != nil {
			t.Fatal(err)
		}
		_, err = u.begin("aks-c", machine{size: "Standard_D4s_v5", zone: "1", spot: true})
		wantError(t, err, "SkuNotAvailable", "")
		time.Sleep(181 * time.Second)
		p, err := u.nics.BeginDelete(t.Context(), u.NodeResourceGroup, "aks-c", nil)
		if err != nil {
			t.Fatalf("still reserved after 181 s: %v", err)
		}
		if _, err := p.PollUntilDone(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestQuotaRefusalReleasesInterface(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) { c.Quota = map[string]int64{"cores": 0} })
	_, err := u.begin("aks-a", machine{size: "Standard_D4s_v5"})
	wantError(t, err, "OperationNotAllowed", "Total Regional Cores quota")
	if _, err := u.nics.BeginDelete(t.Context(), u.NodeResourceGroup, "aks-a", nil); err != nil {
		t.Errorf("cannot delete the interface: %v", err)
	}
}

func TestInterfaceInUseCannotBeDeleted(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5"})
	_, err := u.nics.BeginDelete(t.Context(), u.NodeResourceGroup, "aks-a", nil)
	wantError(t, err, "NicInUse", "used by existing resource")
}

func TestSubnetFullUntilAddressIsReleased(t *testing.T) {
	u := subscribe(t)
	small, err := u.subnets.BeginCreateOrUpdate(t.Context(), u.NodeResourceGroup, "aks-vnet-10000001", "small", armnetwork.Subnet{
		Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: to.Ptr("10.230.0.0/29")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := small.PollUntilDone(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	u.SubnetID = *sub.ID
	for _, name := range []string{"a", "b", "c"} { // 8 addresses, 5 of them Azure's
		if _, err := u.nic(name); err != nil {
			t.Fatal(err)
		}
	}
	_, err = u.nic("d")
	wantError(t, err, "SubnetIsFull", "10.230.0.0/29")
	p, err := u.nics.BeginDelete(t.Context(), u.NodeResourceGroup, "b", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.PollUntilDone(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	nic, err := u.nic("d")
	if err != nil {
		t.Fatal(err)
	}
	if ip := *nic.Properties.IPConfigurations[0].Properties.PrivateIPAddress; ip != "10.230.0.5" && ip != "10.230.0.4" && ip != "10.230.0.6" {
		t.Errorf("address %s", ip)
	}
	got, err := u.subnets.Get(t.Context(), u.NodeResourceGroup, "aks-vnet-10000001", "small", nil)
	if err != nil || len(got.Properties.IPConfigurations) != 3 {
		t.Errorf("subnet shows %d addresses in use (%v), want 3", len(got.Properties.IPConfigurations), err)
	}
}

func TestInvalidResourceReferenceOfLoadBalancerPool(t *testing.T) {
	u := subscribe(t)
	body := u.nicBody()
	pool := "/subscriptions/" + u.SubscriptionID + "/resourceGroups/" + u.NodeResourceGroup +
		"/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/"
	set := func(name string) {
		body.Properties.IPConfigurations[0].Properties.LoadBalancerBackendAddressPools = []*armnetwork.BackendAddressPool{{ID: to.Ptr(
			pool + name)}}
	}
	set("gone")
	_, err := u.nics.BeginCreateOrUpdate(t.Context(), u.NodeResourceGroup, "aks-a", body, nil)
	wantError(t, err, "InvalidResourceReference", pool+"gone")
	set("kubernetes")
	if _, err := u.nics.BeginCreateOrUpdate(t.Context(), u.NodeResourceGroup, "aks-a", body, nil); err != nil {
		t.Error(err)
	}
}

func TestNotFoundNamesResource(t *testing.T) {
	u := subscribe(t)
	_, err := u.vms.Get(t.Context(), "nowhere", "aks-a", nil)
	wantError(t, err, "ResourceGroupNotFound", "'nowhere'")
	other, err := armcompute.NewVirtualMachinesClient("0000", u.Credential, u.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Get(t.Context(), u.NodeResourceGroup, "aks-a", nil)
	wantError(t, err, "SubscriptionNotFound", "'0000'")
	wantStatus(t, err, http.StatusNotFound)
}
