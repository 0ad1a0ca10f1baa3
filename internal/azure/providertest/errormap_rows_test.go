package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

func TestErrorMap404OnDelete(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		buy := func() launch.Machine {
			t.Helper()
			m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := buy()
		// Another client removes it.
		w.send(t, http.MethodDelete, "Microsoft.Compute/virtualMachines/aks-general-abc12", "")
		time.Sleep(10 * time.Minute)
		for how, ask := range map[string]func() error{
			"get":    func() error { _, err := w.provider.Get(t.Context(), "general-abc12"); return err },
			"find":   func() error { _, err := w.provider.Find(t.Context(), m.ProviderID); return err },
			"delete": func() error { return w.provider.Delete(t.Context(), "general-abc12", "") },
		} {
			if err := ask(); !errors.Is(err, launch.ErrNotFound) {
				t.Errorf("%s: %v, want %v", how, err, launch.ErrNotFound)
			}
		}
		buy() // the name is free again
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestErrorMapPropertyChangeNotAllowedIsAvoided(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
		if err != nil {
			t.Fatal(err)
		}
		// The same claim, wanted otherwise by now: another size, zone and image.
		w.stop()
		w.start(t)
		other := *w.class
		other.ImageFamily, other.Images = "AzureLinux", nil
		if other.Images, err = w.provider.ResolveImages(t.Context(), &other, other.KubernetesVersion); err != nil {
			t.Fatal(err)
		}
		order := w.order("general-abc12", sizes("Standard_D8s_v5"), onDemand(), zones("eastus-2"))
		order.Class = &other
		again, err := w.provider.Launch(t.Context(), order)
		if err != nil || again.Size != "Standard_D4s_v5" || again.Zone != "1" || again.ProviderID != m.ProviderID || again.ImageID != m.ImageID {
			t.Errorf("asked again: %+v, %v, want the machine that there is, %+v", again, err, m)
		}
		if n := w.Server.Stats()[vmWrites]; n != 1 {
			t.Errorf("Azure was asked for the machine %d times, want once", n)
		}
		// That is what would have come of asking again.
		body := strings.Replace(w.get(t, "Microsoft.Compute/virtualMachines/aks-general-abc12"), "Standard_D4s_v5", "Standard_D8s_v5", 1)
		body = strings.Replace(body, `"zones":["1"]`, `"zones":["2"]`, 1)
		if code, _ := w.ask(t, http.MethodPut, "Microsoft.Compute/virtualMachines/aks-general-abc12", body); code != http.StatusConflict {
			t.Errorf("the simulated Azure answers %d to a machine of another zone, want %d", code, http.StatusConflict)
		}
		if n := w.Server.Stats()["errors PropertyChangeNotAllowed"]; n != 1 {
			t.Errorf("PropertyChangeNotAllowed came %d times, want once, to this test", n)
		}
	})
}

func TestErrorMapNicReservedForAnotherVmIsRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fault, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "SkuNotAvailable"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
		if failure := unavailable.Classify(err); failure == nil || failure.Kind != unavailable.SKUNotAvailable {
			t.Fatalf("refused with %v", err)
		}
		if err := w.Server.RemoveFault(fault.ID); err != nil {
			t.Fatal(err)
		}
		if n := w.Server.Stats()["errors NicReservedForAnotherVm"]; n == 0 {
			t.Error("the interface was deleted at once, so that there was nothing to wait for")
		}
		time.Sleep(2 * time.Minute)
		if len(w.Server.Leaks().NICs) != 1 {
			t.Errorf("two minutes after the refusal Azure has %+v, want the interface that it keeps", w.Server.Leaks())
		}
		time.Sleep(90 * time.Second) // 180 s are over, and no garbage was collected
		w.noLeaks(t)
	})
}

func TestErrorMapVMGoneBeforeRunningIsReported(t *testing.T) {
	for _, mode := range []string{config.ModeVMs, config.ModeAKSMachines} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.config.LaunchSettle = 0
				w.restartAs(t, mode)
				m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
				if err != nil || m.State != launch.Creating {
					t.Fatalf("launch gives %+v, %v; want a machine on its way", m, err)
				}
				w.send(t, http.MethodDelete, "Microsoft.Compute/virtualMachines/"+path.Base(m.ProviderID), "") // as any client but nap might
				time.Sleep(10 * time.Minute)
				if kind := w.reported("general-abc12"); kind != unavailable.Other {
					t.Errorf("reported as %q, want %s", kind, unavailable.Other)
				}
				if got := w.blocked("Standard_D4s_v5"); len(got) != 0 {
					t.Errorf("blocked are %v", got)
				}
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

// batchError is a transport that refuses batches as AKS does when something in it
// goes wrong: with what it knows of each machine as JSON in the message.
type batchError struct {
	http.RoundTripper
	framed bool
	hits   atomic.Int64
}

func (b *batchError) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("BatchPutMachine") == "" {
		return b.RoundTripper.RoundTrip(r)
	}
	b.hits.Add(1)
	details := any([]map[string]string{{"code": "ZonalAllocationFailed", "message": "No capacity.", "target": "general-aaaaa"}})
	if b.framed {
		details = map[string]any{"code": "Internal", "details": details}
	}
	message, err := json.Marshal(details)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{
		"code": "BatchMachineInternalServerError", "message": string(message),
	}})
	if err != nil {
		return nil, err
	}
	return answerWith(r, http.StatusInternalServerError, string(body)), nil
}

func TestErrorMapBatchMachineInternalServerErrorPerMachine(t *testing.T) {
	for _, framed := range []bool{false, true} {
		t.Run(fmt.Sprintf("framed %t", framed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				b := &batchError{RoundTripper: w.HTTP.Transport, framed: framed}
				w.HTTP = &http.Client{Transport: b}
				w.restartAs(t, config.ModeAKSMachinesBatched)
				errs := w.launchBatch(t, "general-aaaaa", "general-bbbbb")
				if kindOf(errs[0]) != unavailable.ZonalAllocation || !strings.Contains(errs[0].Error(), "No capacity.") {
					t.Errorf("the machine that the answer names: %v, want its own reason", errs[0])
				}
				if kindOf(errs[1]) != unavailable.Other || !strings.Contains(errs[1].Error(), "BatchMachineInternalServerError") {
					t.Errorf("the machine that it does not name: %v, want the answer itself", errs[1])
				}
				if n := b.hits.Load(); n != 1 {
					t.Errorf("the batch was sent %d times, want once: the same again would have the same answer", n)
				}
				if out := w.provider.Outage(); out != "" {
					t.Errorf("an answer about machines is taken for an outage: %s", out)
				}
				w.noLeaks(t)
			})
		})
	}
}

func TestErrorMapBatchRefusalAppliesToEachMachine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.restartAs(t, config.ModeAKSMachinesBatched)
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultError, Operation: aksWrites, Status: 400, Code: "VMSizeNotSupported", Message: "The VM size is not supported.",
		}); err != nil {
			t.Fatal(err)
		}
		for i, err := range w.launchBatch(t, "general-aaaaa", "general-bbbbb", "general-ccccc") {
			if kindOf(err) != unavailable.SKUUnsupported {
				t.Errorf("machine %d: %v, want %s", i+1, err, unavailable.SKUUnsupported)
			}
		}
		if n := w.Server.Faults()[0].Hits; n != 1 {
			t.Errorf("AKS was asked %d times, want once for the three", n)
		}
		w.noLeaks(t)
	})
}

func TestErrorMapEarlyProvisioningErrorCountsAsRefusal(t *testing.T) {
	for _, mode := range []string{config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restartAs(t, mode)
				if _, err := w.Server.AddFault(armsim.Fault{
					Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v4",
				}); err != nil {
					t.Fatal(err)
				}
				// AKS accepts the machine, and says in its status that there is no capacity.
				begin := time.Now()
				m, err := w.provider.Launch(t.Context(),
					w.order("general-abc12", sizes("Standard_D4s_v4", "Standard_D4s_v5"), onDemand(), zones("eastus-1")))
				if err != nil || m.Size != "Standard_D4s_v5" {
					t.Fatalf("bought %+v, %v, want the next best size in the same call", m, err)
				}
				t.Logf("bought after %s", time.Since(begin))
				if got := w.blocked("Standard_D4s_v4"); len(got) != 2 {
					t.Errorf("blocked are %v, want the refused size in its zone for both capacity types", got)
				}
				if len(w.failed) != 0 {
					t.Errorf("claims were given up: %v", w.failed)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			})
		})
	}
}

func TestErrorMap408IsRetried(t *testing.T) {
	for _, status := range []int{http.StatusRequestTimeout, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var failed atomic.Int64
				plain := w.HTTP.Transport
				w.stop()
				w.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if path := strings.ToLower(r.URL.Path); r.Method == http.MethodPut && strings.Contains(path, "/virtualmachines/") &&
						!strings.Contains(path, "/extensions/") && failed.Add(1) <= 2 {
						return answerWith(r, status, `{"error": {"code": "Passing", "message": "Later."}}`), nil
					}
					return plain.RoundTrip(r)
				})}
				w.start(t)
				if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
					t.Errorf("after two faults: %v", err)
				}
				if n := failed.Load(); n != 3 {
					t.Errorf("the machine was asked for %d times, want until it was granted, the third time", n)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			})
		})
	}
}

func TestErrorMapCanceledCallLeavesNoResources(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultHang, Operation: "Microsoft.Compute/virtualMachines/write"}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.provider.Launch(ctx, w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		if err := w.Server.RemoveFault(w.Server.Faults()[0].ID); err != nil {
			t.Fatal(err)
		}
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		if err != nil || w.Server.Stats()["vm.accepted"] != 1 {
			t.Errorf("asked again: %+v, %v; accepted %d, want the one machine", m, err, w.Server.Stats()["vm.accepted"])
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}
