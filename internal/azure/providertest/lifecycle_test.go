package providertest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestVMLifecycleLeavesNoResources(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		if err != nil {
			t.Fatal(err)
		}
		if m.Size != "Standard_D4s_v5" || m.CapacityType != model.OnDemand || m.Zone == "" {
			t.Errorf("bought %+v, want a zonal on-demand Standard_D4s_v5", m)
		}
		got, err := w.provider.Get(t.Context(), "general-abc12")
		if err != nil || got.ProviderID != m.ProviderID || got.Pool != "general" || got.ImageID != w.class.Images[0].ID {
			t.Errorf("Get gives %+v, %v", got, err)
		}
		list, err := w.provider.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Errorf("List gives %d machines, %v, want one", len(list), err)
		}
		w.deleteAll(t)
		if err := w.provider.Delete(t.Context(), "general-abc12", ""); !errors.Is(err, launch.ErrNotFound) {
			t.Errorf("deleting again: %v, want ErrNotFound", err)
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestParallelLaunchesCreateOneVMPerClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				order := w.order(fmt.Sprintf("general-%03d", i), onDemand())
				if _, err := w.provider.Launch(t.Context(), order); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := w.Server.Stats()["vm.accepted"]; n != 200 {
			t.Errorf("Azure accepted %d machines, want 200", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestLaunchWithoutCandidateNamesReason(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("a", sizes("Standard_None"))); !errors.Is(err, launch.ErrNoCandidate) ||
			!strings.Contains(err.Error(), "Standard_None") {
			t.Errorf("no such size: %v", err)
		}
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultQuota, Family: "cores", Limit: limit(1)}); err != nil {
			t.Fatal(err)
		}
		if err := w.provider.RefreshQuota(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := w.Server.Stats()["vm.accepted"]
		_, err := w.provider.Launch(t.Context(), w.order("a", sizes("Standard_D4s_v5"), onDemand()))
		if !errors.Is(err, launch.ErrNoCandidate) || !strings.Contains(err.Error(), "quota cores has") ||
			w.Server.Stats()["vm.accepted"] != before {
			t.Errorf("no quota: %v, want it said before Azure is asked", err)
		}
		if _, err := w.provider.Launch(t.Context(), w.order(strings.Repeat("x", 61), onDemand())); err == nil ||
			!strings.Contains(err.Error(), "Azure allows 64") {
			t.Errorf("a name that is too long: %v", err)
		}
	})
}

// spoiled is a transport that makes running machines look as after a failed
// change of an extension.
type spoiled struct{ http.RoundTripper }

func (s spoiled) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.Contains(strings.ToLower(r.URL.Path), "/virtualmachines") {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer(`"provisioningState":"Succeeded"`, `"provisioningState":"Failed"`,
		`"ProvisioningState/succeeded"`, `"ProvisioningState/failed/VMExtensionProvisioningError"`).Replace(string(body))
	answer.Body = io.NopCloser(strings.NewReader(text))
	return answer, nil
}

func TestRunningVMKeptAfterFailedUpdate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.stop()
		w.HTTP = &http.Client{Transport: spoiled{w.HTTP.Transport}}
		w.start(t)
		m, err := w.provider.Get(t.Context(), "general-abc12")
		if err != nil || m.State != launch.Failed {
			t.Fatalf("the machine looks like %+v, %v; want Failed", m, err)
		}
		time.Sleep(10 * time.Minute)
		if m, err := w.provider.Get(t.Context(), "general-abc12"); err != nil || m.State == launch.Deleting || len(w.failed) != 0 {
			t.Errorf("the machine is %+v, %v, reported %v; want it kept", m, err, w.failed)
		}
	})
}

func TestTrap26NewVMListedDespiteResourceGraphLag(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		if machines, err := w.provider.List(t.Context()); err != nil || len(machines) != 1 {
			t.Errorf("listed right after the launch are %+v, %v; want one machine", machines, err)
		}
		w.deleteAll(t)
	}, func(c *armsim.Config) { c.GraphLag = time.Hour })
}

func TestTrap23NVMeOnlySizesLaunch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for size, want := range map[string]bool{"Standard_D4s_v6": true, "Standard_D4s_v5": false, "Standard_D4as_v6": false} {
			claim := "general-" + strings.ReplaceAll(strings.ToLower(size[9:]), "_", "")
			if _, err := w.provider.Launch(t.Context(), w.order(claim, sizes(size), onDemand())); err != nil {
				t.Errorf("%s: %v", size, err)
				continue
			}
			if got := strings.Contains(w.get(t, "Microsoft.Compute/virtualMachines/aks-"+claim), `"diskControllerType":"NVMe"`); got != want {
				t.Errorf("%s: NVMe is asked for: %t, want %t", size, got, want)
			}
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestUpdateTagsAndIdentitiesOneCallPerResource(t *testing.T) {
	for mode, want := range map[string]struct{ tags, identities map[string]int }{
		config.ModeVMs:                {map[string]int{"virtualmachines": 1, "extensions": 1, "networkinterfaces": 1}, map[string]int{"virtualmachines": 1}},
		config.ModeAKSMachines:        {map[string]int{"machines": 1}, map[string]int{}},
		config.ModeAKSMachinesBatched: {map[string]int{"machines": 1}, map[string]int{}},
	} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				counted := &changes{RoundTripper: w.HTTP.Transport, n: map[string]int{}}
				w.HTTP = &http.Client{Transport: counted}
				w.restartAs(t, mode)
				const claim = "general-abc12"
				if _, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand())); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				expect := func(what string, calls map[string]int) {
					t.Helper()
					for range 2 { // the second time there is nothing left to do
						if err := w.provider.Update(t.Context(), claim, w.class); err != nil {
							t.Fatal(err)
						}
					}
					if got := counted.take(); !maps.Equal(got, calls) {
						t.Errorf("%s: changing calls %v, want %v", what, got, calls)
					}
				}
				expect("nothing has changed", map[string]int{})
				w.class.Tags = map[string]string{"cost/center": "42"}
				expect("a tag more", want.tags)
				m, err := w.provider.Get(t.Context(), claim)
				if err != nil || m.Tags["cost_center"] != "42" || m.Tags["karpenter.azure.com_cluster"] != w.ClusterName || m.Pool != "general" {
					t.Errorf("%+v, %v", m, err)
				}
				w.class.Tags = nil
				expect("a tag less", want.tags)
				if m, _ := w.provider.Get(t.Context(), claim); m.Tags["cost_center"] != "" {
					t.Errorf("tags %v", m.Tags)
				}
				w.config.NodeIdentities = []string{"/subscriptions/" + w.SubscriptionID + "/resourceGroups/" +
					w.ResourceGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/extra"}
				w.restartAs(t, mode)
				counted.take()
				expect("an identity more", want.identities)
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}
