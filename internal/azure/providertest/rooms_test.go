package providertest

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/network"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
)

func TestImagesOfAFamilyAreResolvedInOrderOfPreference(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			family, version string
			trusted         bool
			want            string
		}{
			{"Ubuntu", "1.34.0", false, "2404gen2containerd/amd64/2 2404containerd/amd64/1 2404gen2arm64containerd/arm64/2"},
			{"Ubuntu", "1.33.9", false, "2204gen2containerd/amd64/2 2204containerd/amd64/1 2204gen2arm64containerd/arm64/2"},
			{"Ubuntu2204", "1.35.1", true, "2204gen2TLcontainerd/amd64/2"},
			{"AzureLinux", "1.32.0", false, "V3gen2/amd64/2 V3/amd64/1 V3gen2arm64/arm64/2"},
			{"AzureLinux", "1.31.0", false, "V2gen2/amd64/2 V2/amd64/1 V2gen2arm64/arm64/2"},
		} {
			class := *w.class
			class.ImageFamily, class.VTPM = tt.family, tt.trusted
			images, err := w.provider.ResolveImages(t.Context(), &class, tt.version)
			if err != nil {
				t.Errorf("%s %s: %v", tt.family, tt.version, err)
				continue
			}
			var got []string
			for _, i := range images {
				got = append(got, i.Definition+"/"+i.Arch+"/"+string(rune('0'+i.Generation)))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s %s: %v, want %s", tt.family, tt.version, got, tt.want)
			}
		}
	})
}

func TestANewImageIsNoticedAndAPinnedOneStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := versionOf(w.class.Images[0].ID)
		w.Server.PublishImages("202701.01.0")
		time.Sleep(2 * time.Hour)
		for pin, want := range map[string]string{"": "202701.01.0", old: old} {
			class := *w.class
			class.ImageVersion = pin
			images, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1")
			if err != nil || versionOf(images[0].ID) != want {
				t.Errorf("pinned to %q: %v, %v; want version %s", pin, images, err, want)
			}
		}
		class := *w.class
		class.ImageVersion = "199001.01.0"
		if _, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1"); !errors.Is(err, image.ErrNotFound) || !strings.Contains(err.Error(), "spec.imageVersion") {
			t.Errorf("a version that never was: %v", err)
		}
		class.ImageVersion, class.FIPS = "", true
		if _, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1"); !errors.Is(err, image.ErrFIPS) {
			t.Errorf("FIPS: %v", err)
		}
	})
}

func versionOf(id string) string { return id[strings.LastIndex(id, "/")+1:] }

func TestSubnetsAreCheckedBeforeMachinesAreBought(t *testing.T) {
	in := func(id string) *nodeclass.NodeClass { return &nodeclass.NodeClass{Name: "default", SubnetID: id} }
	inWorld(t, func(t *testing.T, w *world) {
		if err := w.provider.ValidateSubnet(t.Context(), in("")); err != nil {
			t.Errorf("the cluster's own subnet: %v", err)
		}
		if err := w.provider.ValidateSubnet(t.Context(), in(w.SubnetID)); err != nil {
			t.Errorf("the cluster's own subnet by name: %v", err)
		}
		if err := w.provider.ValidateSubnet(t.Context(), in(w.SubnetID+"2")); !errors.Is(err, network.ErrSubnetInvalid) || !strings.Contains(err.Error(), "managed by AKS") {
			t.Errorf("another subnet of a managed network: %v", err)
		}
	})
	inWorld(t, func(t *testing.T, w *world) {
		// A network of the user's own: nothing in it exists here.
		w.stop()
		w.config.VNETSubnetID = "/subscriptions/" + w.SubscriptionID + "/resourceGroups/own/providers/Microsoft.Network/virtualNetworks/net/subnets/nodes"
		w.start(t)
		if err := w.provider.ValidateSubnet(t.Context(), in("")); !errors.Is(err, network.ErrSubnetNotFound) {
			t.Errorf("a missing subnet: %v", err)
		}
		other := strings.Replace(w.config.VNETSubnetID, "/net/", "/other/", 1)
		if err := w.provider.ValidateSubnet(t.Context(), in(other)); !errors.Is(err, network.ErrSubnetInvalid) || !strings.Contains(err.Error(), "virtual network net") {
			t.Errorf("a subnet of another network: %v", err)
		}
	})
}

func TestTrap12ASubnetWithoutFreeAddressesIsNamedBeforeMachinesAreBought(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { // 16 addresses, 5 of them Azure's
		for i := range 11 {
			if err := w.provider.ValidateSubnet(t.Context(), w.class); err != nil {
				t.Fatalf("before machine %d: %v", i+1, err)
			}
			if _, err := w.provider.Launch(t.Context(), w.order("general-"+string(rune('a'+i)), onDemand())); err != nil {
				t.Fatalf("machine %d: %v", i+1, err)
			}
		}
		if err := w.provider.ValidateSubnet(t.Context(), w.class); !errors.Is(err, network.ErrSubnetFull) || !strings.Contains(err.Error(), "has 0 and a machine takes 1") {
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
		if err := w.provider.ValidateSubnet(t.Context(), &class); !errors.Is(err, network.ErrSubnetFull) || !strings.Contains(err.Error(), "has 11 and a machine takes 12") {
			t.Errorf("a machine with as many pods as there are addresses: %v, want %v", err, network.ErrSubnetFull)
		}
		class.MaxPods = 11
		if err := w.provider.ValidateSubnet(t.Context(), &class); err != nil {
			t.Error(err)
		}
	}, func(c *armsim.Config) { c.Cluster.Subnet = netip.MustParsePrefix("10.224.0.0/28") })
}

func TestTrap6AProcessThatStartsFollowsWhatItsPredecessorBought(t *testing.T) {
	inWorld(t, failsUnseen, func(c *armsim.Config) { c.Latency.VMFail = armsim.Distribution{Median: time.Minute} })
}

// failsUnseen has a machine accepted, the process die, the machine fail unseen, and
// the next process report it.
func failsUnseen(t *testing.T, w *world) {
	w.stop()
	w.config.LaunchSettle = 0
	w.start(t)
	w.breaking(t, armsim.Fault{Kind: armsim.FaultFail, Code: "ZonalAllocationFailed", Message: "No capacity."})
	m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1")))
	if err != nil || m.State != launch.Creating {
		t.Fatalf("launch gives %+v, %v", m, err)
	}
	w.stop()
	time.Sleep(5 * time.Minute)

	w.start(t)
	time.Sleep(time.Minute)
	if kind := w.reported("general-abc12"); kind != unavailable.ZonalAllocation {
		t.Errorf("the new process reports %q, want %s", kind, unavailable.ZonalAllocation)
	}
	if got := w.blocked("Standard_D4s_v5"); len(got) != 2 {
		t.Errorf("the new process blocks %v, want both capacity types in eastus-1", got)
	}
	w.deleteAll(t)
	w.noLeaks(t)
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

func TestARunningMachineIsKeptWhenALaterChangeOfItFailed(t *testing.T) {
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

func TestAMachineOfSomebodyElseIsNotTouched(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.config.ClusterName = "another"
		w.start(t)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", onDemand())); !errors.Is(err, launch.ErrForeign) {
			t.Errorf("launching under a taken name: %v", err)
		}
		if err := w.provider.Delete(t.Context(), "general-abc12"); !errors.Is(err, launch.ErrForeign) {
			t.Errorf("deleting another cluster's machine: %v", err)
		}
		if list, err := w.provider.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("List shows %v, %v", list, err)
		}
		time.Sleep(time.Hour)
		if removed, err := w.provider.CollectMachines(t.Context(), noClaims); err != nil || len(removed) != 0 {
			t.Errorf("collected %v, %v", removed, err)
		}
	})
}

func TestNothingToBuySaysWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.provider.Launch(t.Context(), w.order("a", sizes("Standard_None"))); !errors.Is(err, launch.ErrNoCandidate) || !strings.Contains(err.Error(), "Standard_None") {
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
		if !errors.Is(err, launch.ErrNoCandidate) || !strings.Contains(err.Error(), "quota cores has") || w.Server.Stats()["vm.accepted"] != before {
			t.Errorf("no quota: %v, want it said before Azure is asked", err)
		}
		if _, err := w.provider.Launch(t.Context(), w.order(strings.Repeat("x", 61), onDemand())); err == nil || !strings.Contains(err.Error(), "Azure allows 64") {
			t.Errorf("a name that is too long: %v", err)
		}
	})
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

func TestAVanishedLoadBalancerPoolIsForgottenOnce(t *testing.T) {
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
