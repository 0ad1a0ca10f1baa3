package providertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// world is a simulated Azure with a provider on it. Everything that happens in
// it happens in a synctest bubble.
type world struct {
	*armtest.Env
	provider *azure.Provider
	class    *nodeclass.NodeClass
	config   config.Config
	stop     func()
	metrics  prometheus.Registerer // nil: nobody reads them

	mu     sync.Mutex
	failed map[string]unavailable.Kind
}

// inWorld runs a test in a bubble, with a running provider.
func inWorld(t *testing.T, test func(t *testing.T, w *world), options ...func(*armsim.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Env: armtest.New(t, append([]func(*armsim.Config){fewSizes}, options...)...), failed: map[string]unavailable.Kind{}}
		w.config = config.Config{
			ClusterName: w.ClusterName, ClusterEndpoint: "https://cluster.test:443", ClusterCA: []byte("certificates"),
			BootstrapToken: "abcdef.0123456789abcdef", SSHPublicKey: "ssh-rsa AAAA", AdminUsername: "azureuser",
			SubscriptionID: w.SubscriptionID, Location: w.Region,
			NodeResourceGroup: w.NodeResourceGroup, VNETSubnetID: w.SubnetID,
			NetworkPlugin: "azure", NetworkPluginMode: "overlay", NetworkDataplane: "cilium", DNSServiceIP: "10.0.0.10",
			VMMemoryOverhead: 0.075, LaunchSettle: 10 * time.Second,
			Cloud: config.Cloud{
				TenantID: w.TenantID,
				Environment: &config.Environment{
					Name: "simulated", ResourceManagerEndpoint: armtest.Endpoint, ActiveDirectoryEndpoint: armtest.Endpoint, TokenAudience: "https://management.azure.com",
				},
				RetailPrices: armtest.Endpoint + "/api/retail/prices",
			},
		}
		w.class = &nodeclass.NodeClass{Name: "default", OSDiskSizeGB: 128, ImageFamily: "Ubuntu", KubernetesVersion: "1.35.1"}
		w.start(t)
		images, err := w.provider.ResolveImages(t.Context(), w.class, w.class.KubernetesVersion)
		if err != nil {
			t.Fatal(err)
		}
		w.class.Images = images
		test(t, w)
		w.stop()
	})
}

// fewSizes is for tests of something else; allSizes for those of what is sold.
func fewSizes(c *armsim.Config) { c.Sizes = []string{"Standard_D2*", "Standard_D4*", "Standard_D8*"} }
func allSizes(c *armsim.Config) { c.Sizes = nil }

// reported is what the controller was told of a claim whose machine failed late.
func (w *world) reported(claim string) unavailable.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed[claim]
}

// start makes a provider and runs it, as a new process would.
func (w *world) start(t *testing.T) {
	t.Helper()
	provider, err := azure.New(t.Context(), w.config, azure.Deps{
		Credential: w.Credential, Transport: w.HTTP, Metrics: w.metrics, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	provider.OnFailed(func(_ context.Context, claim string, f *unavailable.Failure) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed[claim] = f.Kind
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := provider.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	w.provider = provider
	w.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// sizes asks for one of some sizes.
func sizes(names ...string) model.Requirement {
	return model.Requirement{Key: model.LabelInstanceType, Operator: model.In, Values: names}
}

func onDemand() model.Requirement {
	return model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{"on-demand"}}
}

func zones(labels ...string) model.Requirement {
	return model.Requirement{Key: model.LabelZone, Operator: model.In, Values: labels}
}

func (w *world) order(claim string, requirements ...model.Requirement) azure.Order {
	return azure.Order{Claim: claim, Pool: "general", Class: w.class, Requirements: requirements, Requests: model.Resources{1000, 1 << 30, 0, 1}}
}

// deleteAll gives every machine back and waits until Azure has none.
func (w *world) deleteAll(t *testing.T) {
	t.Helper()
	for range 600 {
		machines, err := w.provider.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(machines) == 0 {
			return
		}
		for _, m := range machines {
			if err := w.provider.Delete(t.Context(), m.Claim); err != nil && !errors.Is(err, launch.ErrNotFound) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
	}
	t.Fatal("machines do not go away")
}

// noLeaks asks the simulated Azure whether anything is left.
func (w *world) noLeaks(t *testing.T) {
	t.Helper()
	if leaks := fmt.Sprintf("%+v", w.Server.Leaks()); leaks != fmt.Sprintf("%+v", armsim.Inventory{}) {
		t.Errorf("left in Azure: %s", leaks)
	}
}

func TestAMachineIsBoughtSeenAndGivenBackWithoutATrace(t *testing.T) {
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
		if err := w.provider.Delete(t.Context(), "general-abc12"); !errors.Is(err, launch.ErrNotFound) {
			t.Errorf("deleting again: %v, want ErrNotFound", err)
		}
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestTwoHundredMachinesAreBoughtInParallelAndNoneTwice(t *testing.T) {
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

func noClaims(context.Context) (map[string]bool, error) { return nil, nil }

var errKilled = errors.New("killed")

// killAfter is a transport that dies after a matching request was served.
type killAfter struct {
	http.RoundTripper
	method, path string
	kill         context.CancelCauseFunc
}

func (k *killAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := k.RoundTripper.RoundTrip(r)
	if r.Method == k.method && strings.Contains(strings.ToLower(r.URL.Path), k.path) {
		k.kill(errKilled)
		return nil, errKilled
	}
	return answer, err
}

func TestAfterAKillAtAnyPointTheSameClaimGetsOneMachine(t *testing.T) {
	for name, path := range map[string]string{
		"after the network interface": "/networkinterfaces/aks-general-abc12",
		"after the machine":           "/virtualmachines/aks-general-abc12",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, kill := context.WithCancelCause(t.Context())
				defer kill(nil)
				healthy := w.HTTP
				w.stop()
				w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, path, kill}}
				w.start(t)
				if _, err := w.provider.Launch(ctx, w.order("general-abc12", onDemand())); err == nil {
					t.Fatal("the launch survived its kill")
				}
				w.stop()

				w.HTTP = healthy
				w.start(t)
				if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
					t.Fatal(err)
				}
				if n := w.Server.Stats()["vm.accepted"]; n != 1 {
					t.Errorf("Azure accepted %d machines, want one", n)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}

func TestAfterAKillGarbageCollectionRemovesWhatNobodyClaims(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
			t.Errorf("a young machine: removed %v, %v, want none", removed, err)
		}
		time.Sleep(6 * time.Minute)
		claimed := func(context.Context) (map[string]bool, error) { return map[string]bool{"general-abc12": true}, nil }
		if removed, err := w.provider.CollectMachines(t.Context(), claimed); err != nil || len(removed) != 0 {
			t.Errorf("a claimed machine: removed %v, %v, want none", removed, err)
		}
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 1 {
			t.Errorf("an orphan: removed %v, %v, want one", removed, err)
		}
		time.Sleep(10 * time.Minute)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestAnInterfaceWithoutAMachineIsCollected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, kill := context.WithCancelCause(t.Context())
		healthy := w.HTTP
		w.stop()
		w.HTTP = &http.Client{Transport: &killAfter{healthy.Transport, http.MethodPut, "/networkinterfaces/", kill}}
		w.start(t)
		if _, err := w.provider.Launch(ctx, w.order("general-abc12", onDemand())); err == nil {
			t.Fatal("the launch survived its kill")
		}
		w.stop()
		w.HTTP = healthy
		w.start(t)
		time.Sleep(time.Minute)
		removed, err := w.provider.CollectNICs(t.Context(), noClaims)
		if err != nil || len(removed) != 1 {
			t.Errorf("removed %v, %v, want one", removed, err)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func priceOf(t *testing.T, built *instancetype.Built, size string, capacityType model.CapacityType) model.Money {
	t.Helper()
	for _, it := range built.Catalog.InstanceTypes {
		if it.Name != size {
			continue
		}
		for _, o := range it.Offerings {
			if o.CapacityType == capacityType {
				return o.Price
			}
		}
	}
	t.Fatalf("%s %s is not in the catalogue", size, capacityType)
	return 0
}
