package providertest

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// patches counts PATCH calls by the kind of resource that they change.
type patches struct {
	http.RoundTripper
	mu sync.Mutex
	n  map[string]int
}

func (p *patches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		parts := strings.Split(strings.ToLower(r.URL.Path), "/")
		p.mu.Lock()
		p.n[parts[len(parts)-2]]++
		p.mu.Unlock()
	}
	return p.RoundTripper.RoundTrip(r)
}

func (p *patches) take() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.n
	p.n = map[string]int{}
	return out
}

func TestTagsAndIdentitiesAreUpdatedInPlaceWithOneCallPerResource(t *testing.T) {
	for mode, want := range map[string]struct{ tags, identities map[string]int }{
		config.ModeVMs:                {map[string]int{"virtualmachines": 1, "networkinterfaces": 1}, map[string]int{"virtualmachines": 1}},
		config.ModeAKSMachines:        {map[string]int{"machines": 1}, map[string]int{}},
		config.ModeAKSMachinesBatched: {map[string]int{"machines": 1}, map[string]int{}},
	} {
		t.Run(mode, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				counted := &patches{RoundTripper: w.HTTP.Transport, n: map[string]int{}}
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
						t.Errorf("%s: PATCH calls %v, want %v", what, got, calls)
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
				w.config.NodeIdentities = []string{"/subscriptions/" + w.SubscriptionID + "/resourceGroups/" + w.ResourceGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/extra"}
				w.restartAs(t, mode)
				counted.take()
				expect("an identity more", want.identities)
				w.deleteAll(t)
				w.noLeaks(t)
			}, armtest.Realistic)
		})
	}
}
