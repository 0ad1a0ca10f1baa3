package providertest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// errorRow is a row of the error map.
type errorRow struct {
	name  string
	fault armsim.Fault
	ask   []model.Requirement
	kind  unavailable.Kind
	// blocked right after the refusal, for siblingTTL; later is what is still
	// blocked after ten minutes short of ttl, and nothing is after ttl.
	blocked, later []string
	ttl            time.Duration
}

// refusal answers an operation with an error of this code.
func refusal(operation string, status int, code string) armsim.Fault {
	return armsim.Fault{Kind: armsim.FaultError, Operation: operation, Status: status, Code: code, Message: "It is not possible."}
}

// The rows of the error map. Every row attempts Standard_D4s_v5, has it refused by
// a fault, and looks at what is blocked of D4s_v5 and of its larger sibling D8s_v5.
func TestErrorMap(t *testing.T) {
	both, od, sp := []string{"on-demand", "spot"}, []string{"on-demand"}, []string{"spot"}
	d4, d48 := []string{"D4s_v5"}, []string{"D4s_v5", "D8s_v5"}
	zonal := []string{"eastus-1", "eastus-2", "eastus-3"}
	z1, regional := []string{"eastus-1"}, []string{"0"}
	everywhere := slices.Concat(zonal, regional)
	const size, family = "Standard_D4s_v5", "standardDSv5Family"

	rows := []errorRow{
		{"1 OperationNotAllowed LowPriorityCores", armsim.Fault{Kind: armsim.FaultQuota, Family: "lowPriorityCores", Limit: limit(0)},
			[]model.Requirement{spot(), zones(z1...)}, unavailable.SpotQuota, all(d48, sp, everywhere), all(d48, sp, everywhere), time.Hour},
		{"2 OperationNotAllowed Family Cores quota", armsim.Fault{Kind: armsim.FaultQuota, Family: family, Limit: limit(2)},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.FamilyQuota, all(d48, od, everywhere), nil, 10 * time.Minute},
		{"2 OperationNotAllowed Family Cores quota, Current Limit: 0", armsim.Fault{Kind: armsim.FaultQuota, Family: family, Limit: limit(0)},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.FamilyQuota, all(d48, od, everywhere), all(d48, od, everywhere), time.Hour},
		{"3 SkuNotAvailable, spot", armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable", Size: size, Priority: "Spot"},
			[]model.Requirement{spot(), zones(z1...)}, unavailable.SKUNotAvailable, all(d4, sp, zonal), all(d4, sp, zonal), time.Hour},
		{"3 SkuNotAvailable, on-demand", armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SKUNotAvailable, all(d4, od, zonal), all(d4, od, zonal), 23 * time.Hour},
		{"3 SkuNotAvailable, regional", armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable", Size: size},
			[]model.Requirement{onDemand(), zones(regional...)}, unavailable.SKUNotAvailable,
			all(d4, od, regional), all(d4, od, regional), 23 * time.Hour},
		{"4 ZonalAllocationFailed", armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.ZonalAllocation, all(d48, both, z1), all(d4, both, z1), time.Hour},
		{"5 AllocationFailed", armsim.Fault{Kind: armsim.FaultCapacity, Code: "AllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones(regional...)}, unavailable.Allocation,
			all(d48, both, regional), all(d4, both, regional), time.Hour},
		{"5 AllocationFailed, zonal", armsim.Fault{Kind: armsim.FaultCapacity, Code: "AllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.Allocation, all(d48, both, zonal), all(d4, both, zonal), time.Hour},
		{"6 OverconstrainedZonalAllocationRequest",
			armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedZonalAllocationRequest", Size: size},
			[]model.Requirement{spot(), zones(z1...)}, unavailable.OverconstrainedZonal, all(d48, sp, z1), all(d4, sp, z1), time.Hour},
		{"7 OverconstrainedAllocationRequest", armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedAllocationRequest", Size: size},
			[]model.Requirement{spot(), zones(regional...)}, unavailable.Overconstrained, all(d48, sp, regional), all(d4, sp, regional), time.Hour},
		{"7 OverconstrainedAllocationRequest, zonal",
			armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedAllocationRequest", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.Overconstrained, all(d48, od, zonal), all(d4, od, zonal), time.Hour},
		{"8 OperationNotAllowed exceeding approved Total Regional Cores quota",
			armsim.Fault{Kind: armsim.FaultQuota, Family: "cores", Limit: limit(0)},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.RegionalQuota, all(d48, od, everywhere), nil, 0},
		{"9 VMSizeNotSupported", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write",
			Status: 400, Code: "VMSizeNotSupported", Message: "The VM size is not supported."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SKUUnsupported,
			all(d4, both, everywhere), all(d4, both, everywhere), 23 * time.Hour},
		{"9 BadRequest is not supported for subscription",
			armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write",
				Status: 400, Code: "BadRequest", Message: "The size is not supported for subscription x."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SKUUnsupported,
			all(d4, both, everywhere), all(d4, both, everywhere), 23 * time.Hour},
		{"SubnetIsFull", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Network/networkInterfaces/write",
			Status: 400, Code: "SubnetIsFull", Message: "Subnet is full."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SubnetFull, nil, nil, 0},
		{"RequestDisallowedByPolicy", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write",
			Status: 403, Code: "RequestDisallowedByPolicy", Message: "Policy."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.Disallowed, nil, nil, 0},
		{"OperationNotAllowed Submit a request for Quota increase",
			armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write",
				Status: 409, Code: "OperationNotAllowed", Message: "Submit a request for Quota increase."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.OtherQuota, all(d4, od, everywhere), nil, 10 * time.Minute},
		{"async ZonalAllocationFailed", armsim.Fault{Kind: armsim.FaultFail, Code: "ZonalAllocationFailed", Message: "No capacity.", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.ZonalAllocation, all(d48, both, z1), all(d4, both, z1), time.Hour},
		{"AnotherOperationInProgress", refusal("Microsoft.Compute/virtualMachines/write", 409, "AnotherOperationInProgress"),
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.ClusterBusy, nil, nil, 0},
		{"InsufficientSubnetSize", refusal("Microsoft.Network/networkInterfaces/write", 400, "InsufficientSubnetSize"),
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SubnetFull, nil, nil, 0},
	}
	rows = append(rows, errorRow{name: "BadRequest TrustedLaunch is not supported",
		kind: unavailable.Other, ask: []model.Requirement{onDemand(), zones(z1...)},
		fault: armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Status: 400, Code: "BadRequest",
			Message: "The VM size 'Standard_D4s_v5' is not supported for creation of VMs and Virtual Machine Scale Set with " +
				"'TrustedLaunch' security type."}})
	for name, text := range map[string]string{
		"managed cluster": "Operation is not allowed because there's an in progress update managed cluster operation on the managed cluster " +
			"started on UTC 2026-05-22T07:19:23Z. Please wait for it to finish before starting a new operation.",
		"upgrade": "Operation is not allowed: Another operation (Upgrading) is in progress, please wait for it to finish before starting a new operation.",
	} {
		fault := refusal("Microsoft.Compute/virtualMachines/write", 409, "OperationNotAllowed")
		fault.Message = text
		rows = append(rows, errorRow{name: "in progress, " + name, fault: fault,
			ask: []model.Requirement{onDemand(), zones(z1...)}, kind: unavailable.ClusterBusy})
	}
	for _, code := range []string{"AuthorizationFailed", "LinkedAuthorizationFailed"} {
		rows = append(rows, errorRow{name: code, fault: refusal("Microsoft.Compute/virtualMachines/write", 403, code),
			ask: []model.Requirement{onDemand(), zones(z1...)}, kind: unavailable.NotAuthorized})
	}
	// What says nothing about a size, a zone or a quota blocks nothing.
	for _, code := range []string{"InvalidTemplate", "MarketplacePurchaseEligibilityFailed", "Conflict"} {
		rows = append(rows, errorRow{name: code, fault: refusal("Microsoft.Compute/virtualMachines/write", 409, code),
			ask: []model.Requirement{onDemand(), zones(z1...)}, kind: unavailable.Other})
	}
	for _, code := range []string{"OperationPreempted", "InternalExecutionError", "VMExtensionProvisioningError", "OSProvisioningTimedOut"} {
		fault := armsim.Fault{Kind: armsim.FaultFail, Code: code, Message: "It went wrong.", Size: size}
		rows = append(rows, errorRow{
			name: "async " + code, fault: fault, ask: []model.Requirement{onDemand(), zones(z1...)}, kind: unavailable.Other,
		})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				if got := w.blocked(size, "Standard_D8s_v5"); len(got) != 0 {
					t.Fatalf("blocked before anything was asked: %v", got)
				}
				if _, err := w.Server.AddFault(row.fault); err != nil {
					t.Fatal(err)
				}
				_, err := w.provider.Launch(t.Context(), w.order("general-abc12", append(row.ask, sizes(size))...))
				var refused *launch.Refused
				if !errors.As(err, &refused) || refused.Failure.Kind != row.kind {
					t.Fatalf("refused with %v, want kind %s", err, row.kind)
				}
				expect := func(when string, want []string) {
					t.Helper()
					if got := w.blocked(size, "Standard_D8s_v5"); !slices.Equal(got, want) {
						t.Errorf("%s blocked are %v\nwant %v", when, got, want)
					}
				}
				expect("right after", row.blocked)
				if row.ttl > 10*time.Minute {
					time.Sleep(row.ttl - 10*time.Minute)
					expect("just before the end", row.later)
					time.Sleep(10*time.Minute + time.Second)
				} else {
					time.Sleep(row.ttl + time.Second)
				}
				for _, f := range w.Server.Faults() {
					if err := w.Server.RemoveFault(f.ID); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.provider.RefreshQuota(t.Context()); err != nil {
					t.Fatal(err)
				}
				expect("after the end", nil)
				time.Sleep(10 * time.Minute)
				if _, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				w.noLeaks(t)
			})
		})
	}
}
