package providertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

func TestValidateSubnet(t *testing.T) {
	in := func(id string) *nodeclass.NodeClass { return &nodeclass.NodeClass{Name: "default", SubnetID: id} }
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.provider.ValidateSubnet(t.Context(), in("")); err != nil {
			t.Errorf("the cluster's own subnet: %v", err)
		}
		if err := w.provider.ValidateSubnet(t.Context(), in(w.SubnetID)); err != nil {
			t.Errorf("the cluster's own subnet by name: %v", err)
		}
		if err := w.provider.ValidateSubnet(t.Context(), in(w.SubnetID+"2")); !errors.Is(err, network.ErrSubnetInvalid) ||
			!strings.Contains(err.Error(), "managed by AKS") {
			t.Errorf("another subnet of a managed network: %v", err)
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		// A network of the user's own: nothing in it exists here.
		w.stop()
		w.config.VNETSubnetID = "/subscriptions/" + w.SubscriptionID +
			"/resourceGroups/own/providers/Microsoft.Network/virtualNetworks/net/subnets/nodes"
		w.start(t)
		if err := w.provider.ValidateSubnet(t.Context(), in("")); !errors.Is(err, network.ErrSubnetNotFound) {
			t.Errorf("a missing subnet: %v", err)
		}
		other := strings.Replace(w.config.VNETSubnetID, "/net/", "/other/", 1)
		if err := w.provider.ValidateSubnet(t.Context(), in(other)); !errors.Is(err, network.ErrSubnetInvalid) ||
			!strings.Contains(err.Error(), "virtual network net") {
			t.Errorf("a subnet of another network: %v", err)
		}
	})
}

func TestTrap12FullSubnetFoundBeforeLaunch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { // 16 addresses, 5 of them Azure's
		for i := range 11 {
			if err := w.provider.ValidateSubnet(t.Context(), w.class); err != nil {
				t.Fatalf("before machine %d: %v", i+1, err)
			}
			if _, err := w.provider.Launch(t.Context(), w.order("general-"+string(rune('a'+i)), onDemand())); err != nil {
				t.Fatalf("machine %d: %v", i+1, err)
			}
		}
		if err := w.provider.ValidateSubnet(t.Context(), w.class); !errors.Is(err, network.ErrSubnetFull) ||
			!strings.Contains(err.Error(), "has 0 and a machine takes 1") {
			t.Errorf("when every address is taken: %v, want %v", err, network.ErrSubnetFull)
		}
		_, err := w.provider.Launch(t.Context(), w.order("general-z", onDemand()))
		if failure := unavailable.Classify(err); failure == nil || failure.Kind != unavailable.SubnetFull {
			t.Errorf("one machine too many: %v, want %s", err, unavailable.SubnetFull)
		}
		w.deleteAll(t)
	}, func(c *armsim.Config) { c.Cluster.Subnet = netip.MustParsePrefix("10.224.0.0/28") })
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.NetworkPluginMode, w.config.NetworkDataplane = "", ""
		w.start(t)
		class := *w.class
		class.MaxPods = 12
		if err := w.provider.ValidateSubnet(t.Context(), &class); !errors.Is(err, network.ErrSubnetFull) ||
			!strings.Contains(err.Error(), "has 11 and a machine takes 12") {
			t.Errorf("a machine with as many pods as there are addresses: %v, want %v", err, network.ErrSubnetFull)
		}
		class.MaxPods = 11
		if err := w.provider.ValidateSubnet(t.Context(), &class); err != nil {
			t.Error(err)
		}
	}, func(c *armsim.Config) { c.Cluster.Subnet = netip.MustParsePrefix("10.224.0.0/28") })
}

// stale is a transport whose first list of load balancers names a pool that
// does not exist.
type stale struct {
	http.RoundTripper
	pool string
	n    int
}

func (s *stale) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(strings.ToLower(r.URL.Path), "/loadbalancers") {
		return answer, err
	}
	s.n++
	if s.n > 1 {
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), "/backendAddressPools/", s.pool)))
	return answer, nil
}

func TestDeletedLoadBalancerPoolIsDroppedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		// The first list of load balancers that the provider sees names a pool that is
		// gone by the time of the purchase.
		s := &stale{RoundTripper: w.HTTP.Transport, pool: "/backendAddressPools/gone-"}
		w.stop()
		w.HTTP = &http.Client{Transport: s}
		w.start(t)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		if s.n != 2 {
			t.Errorf("load balancers were listed %d times, want again after the refusal", s.n)
		}
	})
}

func TestTrap16NewLoadBalancerFoundWithinMinutes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		asked := 0
		plain := w.HTTP.Transport
		w.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(strings.ToLower(r.URL.Path), "/loadbalancers") {
				asked++
			}
			return plain.RoundTrip(r)
		})}
		w.start(t)
		for i, want := range []int{1, 1, 2} { // the third comes six minutes after the first
			if _, err := w.provider.Launch(t.Context(), w.order("general-"+string(rune('a'+i)), onDemand())); err != nil {
				t.Fatal(err)
			}
			if asked != want {
				t.Errorf("at launch %d the load balancers had been listed %d times, want %d", i+1, asked, want)
			}
			time.Sleep(3 * time.Minute)
		}
		w.deleteAll(t)
	})
}

// unfinished is an Azure that accepts network interfaces and, while it hangs, does
// not come to an end with them.
type unfinished struct {
	http.RoundTripper
	hangs atomic.Bool
}

func (u *unfinished) RoundTrip(r *http.Request) (*http.Response, error) {
	const operation = "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/1"
	if r.URL.Path == operation {
		status := map[bool]string{true: "InProgress", false: "Succeeded"}[u.hangs.Load()]
		return &http.Response{
			StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"status": "` + status + `"}`)),
		}, nil
	}
	answer, err := u.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && u.hangs.Load() && strings.Contains(r.URL.Path, "/networkInterfaces/") {
		answer.Header.Set("Azure-AsyncOperation", armtest.Endpoint+operation)
		body, err := io.ReadAll(answer.Body)
		answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), `"Succeeded"`, `"Updating"`)))
		return answer, err
	}
	return answer, err
}

func TestInterfaceNeverProvisionedTimesOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		azure := &unfinished{RoundTripper: w.HTTP.Transport}
		azure.hangs.Store(true)
		w.HTTP = &http.Client{Transport: azure}
		w.restartAs(t, config.ModeVMs)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		order := w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())
		_, err := w.provider.Launch(ctx, order)
		if want := "create network interface aks-general-abc12: it is not finished within 2m0s; it is tried again"; err == nil ||
			err.Error() != want {
			t.Errorf("the launch gives %v, want %q", err, want)
		}
		if took := time.Since(begin); took > 3*time.Minute {
			t.Errorf("it took %v", took)
		}
		azure.hangs.Store(false)
		if _, err := w.provider.Launch(t.Context(), order); err != nil {
			t.Errorf("the next try: %v", err)
		}
		if n := w.Server.Stats()["vm.accepted"]; n != 1 {
			t.Errorf("%d machines were bought, want one", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

// A network interface takes Azure a second or two, and its launch not much longer.
func TestInterfaceIsLookedAtEverySecond(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		azure := &unfinished{RoundTripper: w.HTTP.Transport}
		azure.hangs.Store(true)
		w.HTTP = &http.Client{Transport: azure}
		w.restartAs(t, config.ModeVMs)
		begin := time.Now()
		time.AfterFunc(1500*time.Millisecond, func() { azure.hangs.Store(false) })
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("the launch took %s", took)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}
