package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestAKSMachineLifecycleLeavesNoResources(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		const claim = "a-node-pool-with-quite-a-long-name-abc12"
		order := w.order(claim, sizes("Standard_D4s_v5"), onDemand())
		order.Labels = map[string]string{"team": "blue"}
		order.Taints = []model.Taint{{Key: "gpu", Value: "yes", Effect: model.NoSchedule}}
		m, err := w.provider.Launch(t.Context(), order)
		if err != nil {
			t.Fatal(err)
		}
		if m.Claim != claim || m.Size != "Standard_D4s_v5" || m.Zone == "" || !m.AKS || !strings.HasSuffix(m.ProviderID, "-vm") {
			t.Errorf("bought %+v", m)
		}
		for how, read := range map[string]func() (launch.Machine, error){
			"by claim":       func() (launch.Machine, error) { return w.provider.Get(t.Context(), claim) },
			"by provider id": func() (launch.Machine, error) { return w.provider.Find(t.Context(), m.ProviderID) },
		} {
			got, err := read()
			if err != nil || got.ProviderID != m.ProviderID || got.Claim != claim || got.Pool != "general" || got.ImageID != w.class.Images[0].ID {
				t.Errorf("%s: %+v, %v", how, got, err)
			}
		}
		time.Sleep(5 * time.Minute)
		list, err := w.provider.List(t.Context())
		if err != nil || len(list) != 1 || list[0].State != launch.Succeeded {
			t.Errorf("List gives %+v, %v, want one running machine", list, err)
		}
		k := w.Server.Machines()[0].AKS
		if k.Labels["team"] != "blue" || k.Labels["karpenter.sh/do-not-sync-taints"] != "true" || k.MaxPods != 250 || k.Kubernetes != "1.35.1" {
			t.Errorf("AKS was told %+v", k)
		}
		for key := range k.Labels {
			if strings.HasPrefix(key, "kubernetes.azure.com/") || strings.Contains(key, "kubernetes.io/") {
				t.Errorf("AKS was told label %s, which it writes itself", key)
			}
		}
		if got := strings.Join(k.Taints, " "); got != "karpenter.sh/unregistered:NoExecute gpu=yes:NoSchedule" {
			t.Errorf("AKS was told taints %q", got)
		}
		w.deleteAll(t)
		if err := w.provider.Delete(t.Context(), claim, ""); !errors.Is(err, launch.ErrNotFound) {
			t.Errorf("deleting again: %v, want ErrNotFound", err)
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestAKSBatchesHundredEqualMachinesInFewCalls(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		counted := &puts{RoundTripper: w.HTTP.Transport}
		w.HTTP = &http.Client{Transport: counted}
		w.restartAs(t, config.ModeAKSMachinesBatched)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := w.provider.Launch(t.Context(), w.order(fmt.Sprintf("general-%03d", i), sizes("Standard_D4s_v5"), onDemand())); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := counted.n.Load(); n != 2 {
			t.Errorf("%d calls for 100 machines, want 2 of 50", n)
		}
		if all, err := w.provider.List(t.Context()); err != nil || len(all) != 100 {
			t.Errorf("there are %d machines, %v, want 100", len(all), err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestAKSMachineErrorMap(t *testing.T) {
	const size, family = "Standard_D4s_v5", "standardDSv5Family"
	z1 := zones("eastus-1")
	for name, row := range map[string]struct {
		fault armsim.Fault
		ask   []model.Requirement
		kind  unavailable.Kind
	}{
		"1 OperationNotAllowed LowPriorityCores": {armsim.Fault{Kind: armsim.FaultQuota, Family: "lowPriorityCores", Limit: limit(0)},
			[]model.Requirement{spot(), z1}, unavailable.SpotQuota},
		"2 OperationNotAllowed Family Cores quota": {armsim.Fault{Kind: armsim.FaultQuota, Family: family, Limit: limit(2)},
			[]model.Requirement{onDemand(), z1}, unavailable.FamilyQuota},
		"3 SkuNotAvailable": {armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable", Size: size},
			[]model.Requirement{onDemand(), z1}, unavailable.SKUNotAvailable},
		"4 ZonalAllocationFailed": {armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: size},
			[]model.Requirement{onDemand(), z1}, unavailable.ZonalAllocation},
		"5 AllocationFailed": {armsim.Fault{Kind: armsim.FaultCapacity, Code: "AllocationFailed", Size: size},
			[]model.Requirement{onDemand(), zones("0")}, unavailable.Allocation},
		"6 OverconstrainedZonalAllocationRequest": {armsim.Fault{
			Kind: armsim.FaultCapacity, Code: "OverconstrainedZonalAllocationRequest", Size: size,
		},
			[]model.Requirement{spot(), z1}, unavailable.OverconstrainedZonal},
		"7 OverconstrainedAllocationRequest": {armsim.Fault{Kind: armsim.FaultCapacity, Code: "OverconstrainedAllocationRequest", Size: size},
			[]model.Requirement{spot(), zones("0")}, unavailable.Overconstrained},
		"8 exceeding approved Total Regional Cores quota": {armsim.Fault{Kind: armsim.FaultQuota, Family: "cores", Limit: limit(0)},
			[]model.Requirement{onDemand(), z1}, unavailable.RegionalQuota},
		"9 VMSizeNotSupported": {armsim.Fault{
			Kind: armsim.FaultError, Operation: "Microsoft.ContainerService/managedClusters/agentPools/machines/write",
			Status: 400, Code: "VMSizeNotSupported", Message: "The VM size is not supported.",
		},
			[]model.Requirement{onDemand(), z1}, unavailable.SKUUnsupported},
		"9 BadRequest is not supported for subscription": {armsim.Fault{
			Kind: armsim.FaultError, Operation: "Microsoft.ContainerService/managedClusters/agentPools/machines/write",
			Status: 400, Code: "BadRequest", Message: "The size is not supported for subscription x.",
		},
			[]model.Requirement{onDemand(), z1}, unavailable.SKUUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			inBothAKSModes(t, func(t *testing.T, w *world) {
				if _, err := w.Server.AddFault(row.fault); err != nil {
					t.Fatal(err)
				}
				_, err := w.provider.Launch(t.Context(), w.order("general-abc12", append(row.ask, sizes(size))...))
				var refused *launch.Refused
				if !errors.As(err, &refused) || refused.Failure.Kind != row.kind {
					t.Fatalf("refused with %v, want kind %s", err, row.kind)
				}
				if row.kind != unavailable.RegionalQuota && len(w.blocked(size)) == 0 {
					t.Error("nothing is blocked after the refusal")
				}
				w.noLeaks(t)
			})
		})
	}
}

// hopeful is a transport that hides from the catalogue what the subscription may
// not use, as when that has just changed.
type hopeful struct{ http.RoundTripper }

func (h hopeful) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := h.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/skus") {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), `"restrictions"`, `"hidden"`)))
	return answer, nil
}

func TestAKSBatchFailureOfOneMachineSparesOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.HTTP = &http.Client{Transport: hopeful{w.HTTP.Transport}}
		w.restartAs(t, config.ModeAKSMachinesBatched)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i, zone := range []string{"eastus-1", "eastus-2", "eastus-3", "eastus-2"} {
			wg.Go(func() {
				_, errs[i] = w.provider.Launch(t.Context(), w.order(fmt.Sprintf("general-%03d", i), sizes("Standard_D4s_v5"), onDemand(), zones(zone)))
			})
		}
		wg.Wait()
		var refused *launch.Refused
		if !errors.As(errs[0], &refused) || refused.Failure.Kind != unavailable.SKUUnsupported {
			t.Errorf("zone 1 is restricted: %v", errs[0])
		}
		for _, err := range errs[1:] {
			if err != nil {
				t.Errorf("another zone: %v", err)
			}
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, func(c *armsim.Config) {
		c.Restrictions = []armsim.Restriction{{Size: "Standard_D4s_v5", Zones: []string{"1"}}}
	})
}

func TestAKSMachineLaunchIsIdempotentAfterKill(t *testing.T) {
	inBothAKSModes(t, func(t *testing.T, w *world) {
		ctx, kill := context.WithCancelCause(t.Context())
		defer kill(nil)
		healthy, mode := w.HTTP, w.config.ProvisionMode
		w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, "/machines/general-abc12", kill}}
		w.restartAs(t, mode)
		if _, err := w.provider.Launch(ctx, w.order("general-abc12", onDemand())); err == nil {
			t.Fatal("the launch survived its kill")
		}
		w.HTTP = healthy
		w.restartAs(t, mode)
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand()))
		if err != nil || m.Claim != "general-abc12" {
			t.Fatalf("%+v, %v", m, err)
		}
		time.Sleep(10 * time.Minute)
		if n := len(w.Server.Machines()); n != 1 {
			t.Errorf("%d machines have booted, want one", n)
		}
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 1 {
			t.Errorf("an orphan: removed %v, %v, want one", removed, err)
		}
		time.Sleep(10 * time.Minute)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestProvisionModeSwitchKeepsMachinesOfBothKinds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		buy := func(claim string) launch.Machine {
			m, err := w.provider.Launch(t.Context(), w.order(claim, onDemand()))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		vm := buy("general-aaaaa")
		w.restartAs(t, config.ModeAKSMachines)
		aks := buy("general-bbbbb")
		if again := buy("general-aaaaa"); again.ProviderID != vm.ProviderID {
			t.Errorf("the claim of a virtual machine got %+v", again)
		}
		w.restartAs(t, config.ModeVMs)
		if again := buy("general-bbbbb"); again.ProviderID != aks.ProviderID {
			t.Errorf("the claim of an AKS machine got %+v", again)
		}
		for _, m := range []launch.Machine{vm, aks} {
			if got, err := w.provider.Find(t.Context(), m.ProviderID); err != nil || got.Claim != m.Claim {
				t.Errorf("finding %s: %+v, %v", m.ProviderID, got, err)
			}
		}
		time.Sleep(10 * time.Minute)
		removed, err := w.provider.CollectMachines(t.Context(), noClaims)
		if err != nil || len(removed) != 2 {
			t.Errorf("removed %v, %v, want both kinds", removed, err)
		}
		time.Sleep(10 * time.Minute)
		if removed, err := w.provider.CollectNICs(t.Context(), noClaims); err != nil || len(removed) != 0 {
			t.Errorf("interfaces left: %v, %v", removed, err)
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}
