package providertest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// send is a request of somebody else in the subscription, which succeeds.
func (w *world) send(t *testing.T, method, resource, body string) int {
	t.Helper()
	status, text := w.ask(t, method, resource, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, resource, status, text)
	}
	return status
}

// ask is a request of somebody else in the subscription.
func (w *world) ask(t *testing.T, method, resource, body string) (status int, text string) {
	t.Helper()
	token, err := w.Credential.GetToken(t.Context(), policy.TokenRequestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, armtest.Endpoint+"/subscriptions/"+w.SubscriptionID+"/resourceGroups/"+w.NodeResourceGroup+
		"/providers/"+resource+"?api-version="+apiVersion(resource), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// apiVersion is one that the resource's provider takes.
func apiVersion(resource string) string {
	if strings.HasPrefix(resource, "Microsoft.Network") {
		return "2025-05-01"
	}
	return "2025-04-01"
}

// get reads a resource of the node resource group.
func (w *world) get(t *testing.T, resource string) string {
	t.Helper()
	status, text := w.ask(t, http.MethodGet, resource, "")
	if status != http.StatusOK {
		t.Fatalf("read %s: %d %s", resource, status, text)
	}
	return text
}

// loseTags takes all tags off a resource, as a policy or a person may.
func (w *world) loseTags(t *testing.T, resource string) {
	t.Helper()
	w.send(t, http.MethodPatch, resource, `{"tags": {"cost-center": "4711"}}`)
}

func claimed(names ...string) func(context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return func(context.Context) (map[string]bool, error) { return out, nil }
}

func TestAMachineThatLostItsTagsIsFoundAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"general-abc12", "general-xyz34"} {
			if _, err := w.provider.Launch(t.Context(), w.order(name, onDemand())); err != nil {
				t.Fatal(err)
			}
			w.loseTags(t, "Microsoft.Compute/virtualMachines/aks-"+name)
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("without their tags %d machines are listed, %v", len(list), err)
		}
		// One has a NodeClaim: it is healed at once. The other may be young.
		if removed, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12")); err != nil || len(removed) != 0 {
			t.Fatalf("removed %v, %v", removed, err)
		}
		if got := w.claimsListed(t); got != "general-abc12" {
			t.Errorf("listed are %v, want the claimed one healed", got)
		}
		time.Sleep(61 * time.Minute)
		var removed []string
		for range 2 { // found, then collected
			got, err := w.provider.CollectMachines(t.Context(), claimed("general-abc12"))
			if err != nil {
				t.Fatal(err)
			}
			removed = append(removed, got...)
		}
		if !slices.Equal(removed, []string{"general-xyz34"}) {
			t.Errorf("removed %v, want the one that nobody claims", removed)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestAMachineThatIsNotCertainlyOursKeepsBeingNobodys(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// Names of AKS, names that people give, and a machine of another cluster.
		for _, name := range []string{"nodepool1-12345678-vmss00000a", "jumpbox", "general-abc12"} {
			if _, err := w.provider.Launch(t.Context(), w.order(name, onDemand())); err != nil {
				t.Fatal(err)
			}
			w.loseTags(t, "Microsoft.Compute/virtualMachines/aks-"+name)
		}
		w.send(t, http.MethodPatch, "Microsoft.Compute/virtualMachines/aks-general-abc12", `{"tags": {"karpenter.azure.com_cluster": "another"}}`)
		time.Sleep(24 * time.Hour)
		for range 3 {
			if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
				t.Errorf("removed %v, %v, want none", removed, err)
			}
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("adopted %v, %v, want none", list, err)
		}
	})
}

func TestAnInterfaceThatLostItsTagsIsCollectedAfterAnHour(t *testing.T) {
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
		w.loseTags(t, "Microsoft.Network/networkInterfaces/aks-general-abc12")
		collect := func() []string {
			t.Helper()
			removed, err := w.provider.CollectNICs(t.Context(), noClaims)
			if err != nil {
				t.Fatal(err)
			}
			return removed
		}
		if got := collect(); len(got) != 0 {
			t.Errorf("removed %v at once", got)
		}
		time.Sleep(61 * time.Minute)
		if got := append(collect(), collect()...); !slices.Equal(got, []string{"general-abc12"}) {
			t.Errorf("after an hour removed %v", got)
		}
		time.Sleep(time.Minute)
		w.noLeaks(t)
	})
}
