package providertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
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
	"github.com/nodeautoprovision/nap/internal/azure/jointoken"
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
	metrics  prometheus.Registerer // nil: they are not read
	log      io.Writer             // nil: the test's output

	mu     sync.Mutex
	failed map[string]unavailable.Kind
	fate   launch.Fate // what is to become of machines that fail late
}

// inWorld runs a test in a bubble, with a running provider.
func inWorld(t *testing.T, test func(t *testing.T, w *world), options ...func(*armsim.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Env: armtest.New(t, append([]func(*armsim.Config){fewSizes}, options...)...), failed: map[string]unavailable.Kind{}}
		w.config = config.Config{
			ClusterName: w.ClusterName, ClusterEndpoint: "https://cluster.test:443", ClusterCA: armtest.Certificate(),
			BootstrapToken: jointoken.New("abcdef.0123456789abcdef"), SSHPublicKey: "ssh-rsa AAAA", AdminUsername: "azureuser",
			SubscriptionID: w.SubscriptionID, Location: w.Region,
			NodeResourceGroup: w.NodeResourceGroup, VNETSubnetID: w.SubnetID,
			NetworkPlugin: "azure", NetworkPluginMode: "overlay", NetworkDataplane: "cilium", DNSServiceIP: "10.0.0.10",
			KubeletIdentityClientID: kubeletIdentity, VMMemoryOverhead: 0.075, LaunchSettle: 10 * time.Second,
			Cloud: config.Cloud{
				TenantID: w.TenantID,
				Environment: &config.Environment{
					Name: "simulated", ResourceManagerEndpoint: armtest.Endpoint,
					ActiveDirectoryEndpoint: armtest.Endpoint, Document: []byte("{}"), TokenAudience: "https://management.azure.com",
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

// kubeletIdentity is the client id of the cluster's kubelet identity.
const kubeletIdentity = "0b1f6471-0000-4000-8000-0000000000ce"

// fewSizes is for tests of something else, because every provider that starts reads
// all sizes; dSizes and allSizes are for tests of what is sold.
func fewSizes(c *armsim.Config) {
	c.Sizes = []string{"Standard_D2*_v5", "Standard_D4*_v5", "Standard_D8*_v5", "Standard_D4s_v4", "Standard_D4*s_v6"}
}

func dSizes(c *armsim.Config)   { c.Sizes = []string{"Standard_D2*", "Standard_D4*", "Standard_D8*"} }
func allSizes(c *armsim.Config) { c.Sizes = nil }

// start makes a provider and runs it, as a new process would.
func (w *world) start(t *testing.T) {
	t.Helper()
	provider, err := azure.New(t.Context(), w.config, azure.Deps{
		Credential: w.Credential, Transport: w.HTTP, Metrics: w.metrics,
		Log: slog.New(slog.NewTextHandler(cmp.Or(w.log, t.Output()), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	provider.OnFailed(func(_ context.Context, claim string, f *unavailable.Failure) (launch.Fate, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed[claim] = f.Kind
		return w.fate, nil
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

// restartAs makes the world's next process one with another provision mode.
func (w *world) restartAs(t *testing.T, mode string) {
	t.Helper()
	w.stop()
	w.config.ProvisionMode = mode
	w.config.ResourceGroup, w.config.MachinesPool, w.config.ManageMachines = w.ResourceGroup, "machines", true
	w.config.Batching = config.Batching{Idle: time.Second, Max: 5 * time.Second, Size: 50}
	w.start(t)
}

// The traps that are about what is sold, and for how much.

// through makes the next process one that sees Azure through a transport.
func (w *world) through(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) {
	t.Helper()
	w.stop()
	w.HTTP = &http.Client{Transport: wrap(w.HTTP.Transport)}
	w.start(t)
}

// inBothAKSModes runs a test with AKS machines, asked for singly and in batches.
func inBothAKSModes(t *testing.T, test func(t *testing.T, w *world), options ...func(*armsim.Config)) {
	t.Helper()
	for _, mode := range []string{config.ModeAKSMachines, config.ModeAKSMachinesBatched} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.restartAs(t, mode)
				test(t, w)
			}, options...)
		})
	}
}

// reported is what the controller was told of a claim whose machine failed late.
func (w *world) reported(claim string) unavailable.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed[claim]
}

// deleteAll gives every machine back and waits until Azure has none.
func (w *world) deleteAll(t *testing.T) {
	t.Helper()
	for range 120 {
		machines, err := w.provider.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(machines) == 0 {
			return
		}
		for _, m := range machines {
			if err := w.provider.Delete(t.Context(), m.Claim, ""); err != nil && !errors.Is(err, launch.ErrNotFound) {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second) // of the bubble's clock; each list costs real time
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

// refusals counts the requests that the simulated Azure refused for their rate.
func (w *world) refusals() int64 {
	var n int64
	for name, count := range w.Server.Stats() {
		if strings.HasPrefix(name, "throttled ") {
			n += count
		}
	}
	return n
}

// denials is what the simulated Azure has not permitted.
func (w *world) denials() int64 {
	stats := w.Server.Stats()
	return stats["errors AuthorizationFailed"] + stats["errors LinkedAuthorizationFailed"]
}

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

func (w *world) claimsListed(t *testing.T) string {
	t.Helper()
	list, err := w.provider.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range list {
		out = append(out, m.Claim)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// sold is what a size is to the catalogue; nil when it is not sold.
func (w *world) sold(size string) *model.InstanceType {
	types := w.provider.Catalog(w.class).Catalog.InstanceTypes
	if i := slices.IndexFunc(types, func(t model.InstanceType) bool { return t.Name == size }); i >= 0 {
		return &types[i]
	}
	return nil
}

func priceOf(t *testing.T, built *instancetype.Built, size string, capacityType model.CapacityType) model.Money {
	t.Helper()
	for _, it := range built.Catalog.InstanceTypes {
		if it.Name != size {
			continue
		}
		for _, o := range it.Offerings {
			if o.CapacityType == capacityType {
				return o.MachinePrice()
			}
		}
	}
	t.Fatalf("%s %s is not in the catalogue", size, capacityType)
	return 0
}

func noClaims(context.Context) (map[string]bool, error) { return nil, nil }

func claimed(names ...string) func(context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return func(context.Context) (map[string]bool, error) { return out, nil }
}
