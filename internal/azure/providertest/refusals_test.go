package providertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

const nicWrite, vmWrite = "Microsoft.Network/networkInterfaces/write", "Microsoft.Compute/virtualMachines/write"

// TestRefusalSeenByUsers is one refusal after the other that users of Azure met, in
// Azure's own form, and what nap makes of it.
func TestRefusalSeenByUsers(t *testing.T) {
	zones3, both := []string{"eastus-1", "eastus-2", "eastus-3", "0"}, []string{"on-demand", "spot"}
	od := []string{"on-demand"}
	every := all([]string{"D4s_v5"}, both, zones3)
	for _, c := range []struct {
		code, operation string
		kind            unavailable.Kind
		advice          string   // a part of what the message tells a person to do
		blocked         []string // of Standard_D4s_v5
	}{
		{"SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAvailablePorts", nicWrite, unavailable.OutboundPorts,
			"--load-balancer-outbound-ports", every},
		{"InvalidParameter", vmWrite, unavailable.HostEncryptionOff, "az feature register", nil},
		{"OperationNotAllowed", vmWrite, unavailable.Throttled, "", nil},
		{"NetworkingInternalOperationError", vmWrite, unavailable.Passing, "", all([]string{"D4s_v5"}, od, zones3[:1])},
		{"RetryableError", vmWrite, unavailable.Passing, "", all([]string{"D4s_v5"}, od, zones3[:1])},
		{"VMStartTimedOut", vmWrite, unavailable.Passing, "", all([]string{"D4s_v5"}, od, zones3[:1])},
		{"CanceledAndSupersededDueToAnotherOperation", vmWrite, unavailable.Passing, "", all([]string{"D4s_v5"}, od, zones3[:1])},
		{"ResourceOperationFailure", vmWrite, unavailable.ZonalAllocation, "", all([]string{"D4s_v5"}, both, zones3[:1])},
		{"ResourceDeploymentFailure", vmWrite, unavailable.ZonalAllocation, "", all([]string{"D4s_v5"}, both, zones3[:1])},
		{"OSProvisioningClientError", vmWrite, unavailable.OSProvisioning, "boot diagnostics", nil},
		{"ReadOnlyDisabledSubscription", vmWrite, unavailable.SubscriptionReadOnly, "enable the subscription", every},
		{"ScopeLocked", vmWrite, unavailable.Locked, "az lock list", every},
		{"ResourceGroupBeingDeleted", vmWrite, unavailable.GroupGone, "stop nap", every},
		{"KeyVaultAccessForbidden", vmWrite, unavailable.KeyVaultForbidden, "wrapKey", nil},
		{"ImageVersionNotFound", vmWrite, unavailable.ImageMissing, "imageVersion", nil},
		{"PlatformImageNotFound", vmWrite, unavailable.ImageMissing, "imageVersion", nil},
		{"MissingSubscriptionRegistration", vmWrite, unavailable.NotRegistered, "az provider register", every},
	} {
		t.Run(c.code, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Operation: c.operation, Code: c.code}); err != nil {
					t.Fatal(err)
				}
				_, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
				var refused *launch.Refused
				if !errors.As(err, &refused) || refused.Failure.Kind != c.kind || !strings.Contains(err.Error(), c.advice) {
					t.Fatalf("refused with %v, want kind %s and the advice %q", err, c.kind, c.advice)
				}
				if got, want := strings.Join(w.blocked("Standard_D4s_v5"), ", "), strings.Join(c.blocked, ", "); got != want {
					t.Errorf("blocked are %s, want %s", got, want)
				}
			})
		})
	}
}

// TestPassingRefusalIsAskedOnceMore: what passes is tried again in place, then
// elsewhere.
func TestPassingRefusalIsAskedOnceMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultFail, Code: "NetworkingInternalOperationError", Zone: "1"}); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(),
			w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1", "eastus-2")))
		if err != nil || m.Zone != "2" {
			t.Errorf("%+v, %v; want a machine in the other zone", m, err)
		}
		if n := w.Server.Stats()[vmWrites]; n > 3 {
			t.Errorf("Azure was asked %d times, want at most twice in one zone and once in the other", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// TestUnknownRefusalRestsAfterThree: for one size and zone, and not where a machine was
// made between them.
func TestUnknownRefusalRestsAfterThree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ask := func() error {
			time.Sleep(time.Minute) // until the interface of the attempt before is gone
			_, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
			return err
		}
		refuse := func(times int) {
			t.Helper()
			fault, err := w.Server.AddFault(refusal(vmWrite, 409, "NeverHeardOf"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range times {
				if err := ask(); err == nil || !strings.Contains(err.Error(), "NeverHeardOf") {
					t.Errorf("attempt %d: %v", i, err)
				}
			}
			if err := w.Server.RemoveFault(fault.ID); err != nil {
				t.Fatal(err)
			}
		}
		refuse(unavailable.Repeats - 1)
		if err := ask(); err != nil {
			t.Fatalf("after %d refusals: %v", unavailable.Repeats-1, err)
		}
		w.deleteAll(t)
		refuse(unavailable.Repeats - 1)
		if got := w.blocked("Standard_D4s_v5"); len(got) != 0 {
			t.Errorf("after a machine and %d refusals blocked are %v", unavailable.Repeats-1, got)
		}
		refuse(1)
		if got := strings.Join(w.blocked("Standard_D4s_v5"), ", "); got != "D4s_v5 on-demand eastus-1" {
			t.Errorf("after %d refusals blocked are %s", unavailable.Repeats, got)
		}
		if err := ask(); !errors.Is(err, launch.ErrNoCandidate) {
			t.Errorf("while it rests: %v", err)
		}
		time.Sleep(unavailable.RestTTL + time.Second)
		if err := ask(); err != nil {
			t.Errorf("after the rest: %v", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// TestAKSMachineRefusalThatNeedsAnotherPool: where AKS does not make machines in this
// way at all, the message says what does.
func TestAKSMachineRefusalThatNeedsAnotherPool(t *testing.T) {
	for name, c := range map[string]struct {
		code, message, advice string
		kind                  unavailable.Kind
	}{
		"pool of another mode": {"BadRequest", "Agent pool 'system' is not in 'Machines' mode.", `"mode": "Machines"`, unavailable.NotMachinesPool},
		"no preview":           {"NoRegisteredProviderFound", "No registered resource provider found.", "aksscriptless", unavailable.NoMachineAPI},
		"no feature": {"PreviewFeatureNotRegistered", "Preview feature Microsoft.ContainerService/SomePreview not registered.",
			"az feature register --namespace Microsoft.ContainerService", unavailable.PreviewNotRegistered},
	} {
		t.Run(name, func(t *testing.T) {
			inBothAKSModes(t, func(t *testing.T, w *world) {
				if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultError, Status: 400, Code: c.code, Message: c.message,
					Operation: "Microsoft.ContainerService/managedClusters/agentPools/machines/write"}); err != nil {
					t.Fatal(err)
				}
				_, err := w.provider.Launch(t.Context(), w.pooled("general-abc12"))
				var refused *launch.Refused
				if !errors.As(err, &refused) || refused.Failure.Kind != c.kind || !strings.Contains(err.Error(), c.advice) {
					t.Fatalf("refused with %v, want kind %s and the advice %q", err, c.kind, c.advice)
				}
				if refused.Attempts != 1 {
					t.Errorf("%d attempts, want one: no other offering helps", refused.Attempts)
				}
			})
		})
	}
}

// TestManagedGPUNeedsItsFeature: AKS makes no machine with the device plugin before the
// feature is registered. The refusal says what to do, other classes go on buying, and with
// the feature the machine is made.
func TestManagedGPUNeedsItsFeature(t *testing.T) {
	managed := func(w *world) azure.Order {
		o := w.pooled("general-gpu12")
		class := *w.class
		class.NVIDIAManagement = nodeclass.NVIDIAManaged
		o.Class, o.Requirements = &class, []model.Requirement{sizes("Standard_NC4as_T4_v3"), onDemand()}
		return o
	}
	withGPUs := func(c *armsim.Config) { c.Sizes = append(c.Sizes, "Standard_NC4as_T4_v3") }
	inBothAKSModes(t, func(t *testing.T, w *world) {
		_, err := w.provider.Launch(t.Context(), managed(w))
		var refused *launch.Refused
		if !errors.As(err, &refused) || refused.Failure.Kind != unavailable.NoManagedGPU ||
			!strings.Contains(err.Error(), "az feature register --namespace Microsoft.ContainerService --name ManagedGPUExperiencePreview") {
			t.Fatalf("refused with %v", err)
		}
		if _, err := w.provider.Launch(t.Context(), w.pooled("general-abc12")); err != nil {
			t.Errorf("another class: %v", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, withGPUs)
	inBothAKSModes(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), managed(w)); err != nil {
			t.Errorf("with the feature: %v", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, withGPUs, func(c *armsim.Config) {
		c.Account.Features = []string{"Microsoft.ContainerService/ManagedGPUExperiencePreview"}
	})
}
