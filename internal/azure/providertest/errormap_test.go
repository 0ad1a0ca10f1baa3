package providertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// blockedOf lists what a node class's catalogue shows as not available, as
// "size capacity-type zone".
func (w *world) blocked(sizes ...string) []string {
	var out []string
	for _, it := range w.provider.Catalog(w.class).Catalog.InstanceTypes {
		if !slices.Contains(sizes, it.Name) {
			continue
		}
		for _, o := range it.Offerings {
			if !o.Available {
				out = append(out, strings.TrimPrefix(it.Name, "Standard_")+" "+string(o.CapacityType)+" "+o.Zone)
			}
		}
	}
	slices.Sort(out)
	return out
}

// all lists every combination.
func all(sizes, types, zones []string) []string {
	var out []string
	for _, s := range sizes {
		for _, c := range types {
			for _, z := range zones {
				out = append(out, s+" "+c+" "+z)
			}
		}
	}
	slices.Sort(out)
	return out
}

func spot() model.Requirement {
	return model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"spot"}}
}

func limit(n int64) *int64 { return &n }

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
			[]model.Requirement{onDemand(), zones(regional...)}, unavailable.SKUNotAvailable, all(d4, od, regional), all(d4, od, regional), 23 * time.Hour},
		{"4 ZonalAllocationFailed", armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.ZonalAllocation, all(d48, both, z1), all(d4, both, z1), time.Hour},
		{"5 AllocationFailed", armsim.Fault{Kind: armsim.FaultCapacity, Code: "AllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones(regional...)}, unavailable.Allocation, all(d48, both, regional), all(d4, both, regional), time.Hour},
		{"5 AllocationFailed, zonal", armsim.Fault{Kind: armsim.FaultCapacity, Code: "AllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.Allocation, all(d48, both, zonal), all(d4, both, zonal), time.Hour},
		{"6 OverconstrainedZonalAllocationRequest", armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedZonalAllocationRequest", Size: size},
			[]model.Requirement{spot(), zones(z1...)}, unavailable.OverconstrainedZonal, all(d48, sp, z1), all(d4, sp, z1), time.Hour},
		{"7 OverconstrainedAllocationRequest", armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedAllocationRequest", Size: size},
			[]model.Requirement{spot(), zones(regional...)}, unavailable.Overconstrained, all(d48, sp, regional), all(d4, sp, regional), time.Hour},
		{"7 OverconstrainedAllocationRequest, zonal", armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedAllocationRequest", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.Overconstrained, all(d48, od, zonal), all(d4, od, zonal), time.Hour},
		{"8 OperationNotAllowed exceeding approved Total Regional Cores quota", armsim.Fault{Kind: armsim.FaultQuota, Family: "cores", Limit: limit(0)},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.RegionalQuota, nil, nil, 0},
		{"9 VMSizeNotSupported", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Status: 400, Code: "VMSizeNotSupported", Message: "The VM size is not supported."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SKUUnsupported, all(d4, both, everywhere), all(d4, both, everywhere), 23 * time.Hour},
		{"9 BadRequest is not supported for subscription", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Status: 400, Code: "BadRequest", Message: "The size is not supported for subscription x."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SKUUnsupported, all(d4, both, everywhere), all(d4, both, everywhere), 23 * time.Hour},
		{"SubnetIsFull", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Network/networkInterfaces/write", Status: 400, Code: "SubnetIsFull", Message: "Subnet is full."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SubnetFull, nil, nil, 0},
		{"RequestDisallowedByPolicy", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Status: 403, Code: "RequestDisallowedByPolicy", Message: "Policy."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.Other, nil, nil, 0},
		{"OperationNotAllowed Submit a request for Quota increase", armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Status: 409, Code: "OperationNotAllowed", Message: "Submit a request for Quota increase."},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.OtherQuota, all(d4, od, everywhere), nil, 10 * time.Minute},
		{"async ZonalAllocationFailed", armsim.Fault{Kind: armsim.FaultFail, Code: "ZonalAllocationFailed", Message: "No capacity.", Size: size},
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.ZonalAllocation, all(d48, both, z1), all(d4, both, z1), time.Hour},
		{"InsufficientSubnetSize", refusal("Microsoft.Network/networkInterfaces/write", 400, "InsufficientSubnetSize"),
			[]model.Requirement{onDemand(), zones(z1...)}, unavailable.SubnetFull, nil, nil, 0},
	}
	rows = append(rows, errorRow{name: "BadRequest TrustedLaunch is not supported", kind: unavailable.Other, ask: []model.Requirement{onDemand(), zones(z1...)},
		fault: armsim.Fault{Kind: armsim.FaultError, Operation: "Microsoft.Compute/virtualMachines/write", Status: 400, Code: "BadRequest",
			Message: "The VM size 'Standard_D4s_v5' is not supported for creation of VMs and Virtual Machine Scale Set with 'TrustedLaunch' security type."}})
	// What says nothing about a size, a zone or a quota blocks nothing.
	for _, code := range []string{"InvalidTemplate", "LinkedAuthorizationFailed", "MarketplacePurchaseEligibilityFailed", "Conflict"} {
		rows = append(rows, errorRow{name: code, fault: refusal("Microsoft.Compute/virtualMachines/write", 409, code), ask: []model.Requirement{onDemand(), zones(z1...)}, kind: unavailable.Other})
	}
	for _, code := range []string{"OperationPreempted", "InternalExecutionError", "VMExtensionProvisioningError", "OSProvisioningTimedOut"} {
		fault := armsim.Fault{Kind: armsim.FaultFail, Code: code, Message: "It went wrong.", Size: size}
		rows = append(rows, errorRow{name: "async " + code, fault: fault, ask: []model.Requirement{onDemand(), zones(z1...)}, kind: unavailable.Other})
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

// The simulated Azure answers without delay here, so that what a launch takes is
// nap's own doing: the difference between a launch that meets a failure and one
// that meets none is what the retry adds.
func TestTrap24ACapacityFailureCostsOneRetryInTheSameCall(t *testing.T) {
	for name, kind := range map[string]armsim.FaultKind{"refused at once": armsim.FaultCapacity, "accepted and failed later": armsim.FaultFail} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				timed := func(claim, want string) time.Duration {
					t.Helper()
					begin := time.Now()
					m, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5", "Standard_D4s_v4"), onDemand(), zones("eastus-1")))
					if err != nil {
						t.Fatal(err)
					}
					// Both cost the same, so the name decides which comes first.
					if m.Size != want {
						t.Errorf("bought %s, want %s", m.Size, want)
					}
					return time.Since(begin)
				}
				plain := timed("general-plain", "Standard_D4s_v4")
				if _, err := w.Server.AddFault(armsim.Fault{Kind: kind, Code: "ZonalAllocationFailed", Message: "No capacity.", Size: "Standard_D4s_v4"}); err != nil {
					t.Fatal(err)
				}
				added := timed("general-abc12", "Standard_D4s_v5") - plain
				if n := w.Server.Faults()[0].Hits; n != 1 {
					t.Errorf("the first choice was refused %d times, want once", n)
				}
				t.Logf("a launch takes %v, one with a failure %v longer", plain, added)
				if added >= 2*time.Second {
					t.Errorf("the retry adds %v, want less than 2s", added)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			})
		})
	}
}

func TestWhereSpotIsSoldOutSizeAfterSizeOnDemandIsBoughtInTheSameCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Priority: "Spot"}); err != nil {
			t.Fatal(err)
		}
		family := model.Requirement{Key: instancetype.LabelSKUFamily, Operator: model.In, Values: []string{"D"}}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", family, zones("eastus-1")))
		if err != nil || m.CapacityType != model.OnDemand {
			t.Errorf("bought %+v, %v; want a machine on demand", m, err)
		}
		if n := w.Server.Faults()[0].Hits; n > 6 {
			t.Errorf("spot was refused %d times before that", n)
		}
	})
}

func TestRegionalQuotaStillAllowsSpot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// On-demand is asked for first where it is cheaper.
		if err := w.Server.SetPrice("Standard_D4s_v5", true, 10); err != nil {
			t.Fatal(err)
		}
		// Prices are read again after twelve hours; quotas not at the moment of the fault.
		time.Sleep(12*time.Hour + 5*time.Minute)
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultQuota, Family: "cores", Limit: limit(0)}); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), zones("eastus-1")))
		if err != nil || m.CapacityType != model.Spot {
			t.Errorf("bought %+v, %v; want a spot machine", m, err)
		}
		if n := w.Server.Stats()["errors OperationNotAllowed"]; n != 1 {
			t.Errorf("on-demand was refused %d times, want once", n)
		}
	})
}

func TestALateFailureIsReportedAndLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultFail, Code: "OverconstrainedZonalAllocationRequest", Message: "No capacity."}); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
		if err != nil || m.State != launch.Creating {
			t.Fatalf("launch gives %+v, %v; want a machine on its way", m, err)
		}
		time.Sleep(10 * time.Minute)
		if kind := w.reported("general-abc12"); kind != unavailable.OverconstrainedZonal {
			t.Errorf("reported as %q, want %s", kind, unavailable.OverconstrainedZonal)
		}
		if got := w.blocked("Standard_D4s_v5"); !slices.Equal(got, []string{"D4s_v5 on-demand eastus-1"}) {
			t.Errorf("blocked are %v", got)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}
