package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The traps that are about what is sold, and for how much.

// through makes the next process one that sees Azure through a transport.
func (w *world) through(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) {
	t.Helper()
	w.stop()
	w.HTTP = &http.Client{Transport: wrap(w.HTTP.Transport)}
	w.start(t)
}

// renamed is Azure with another name for a size: one that no table of nap's has.
type renamed struct {
	http.RoundTripper
	azure, nap string
}

func (n renamed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), n.nap, n.azure)))
	}
	answer, err := n.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(string(body), n.azure, n.nap)))
	return answer, nil
}

// sold is what a size is to the catalogue; nil when it is not sold.
func (w *world) sold(size string) *model.InstanceType {
	types := w.provider.Catalog(w.class).Catalog.InstanceTypes
	if i := slices.IndexFunc(types, func(t model.InstanceType) bool { return t.Name == size }); i >= 0 {
		return &types[i]
	}
	return nil
}

func TestTrap1APriceChangeOfTheRetailAPIIsInTheNextCatalogue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		before := priceOf(t, w.provider.Catalog(w.class), "Standard_D4s_v5", model.OnDemand)
		spot := priceOf(t, w.provider.Catalog(w.class), "Standard_D4s_v5", model.Spot)
		if before != model.USD(0.192) || spot >= before {
			t.Errorf("on-demand %v, spot %v; want $0.192/h and less", before, spot)
		}
		if err := w.Server.SetPrice("Standard_D4s_v5", false, 0.5); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12*time.Hour + time.Minute) // prices are read twice a day
		if got := priceOf(t, w.provider.Catalog(w.class), "Standard_D4s_v5", model.OnDemand); got != model.USD(0.5) {
			t.Errorf("after the refresh the price is %v, want $0.500/h", got)
		}
	})
}

func TestTrap2OfTheMetersOfASizeThePrimaryOneIsThePriceWhateverTheirOrder(t *testing.T) {
	type meter struct {
		ArmSKUName           string `json:"armSkuName"`
		ProductName          string `json:"productName"`
		SKUName              string `json:"skuName"`
		IsPrimaryMeterRegion bool   `json:"isPrimaryMeterRegion"`
	}
	inWorld(t, func(t *testing.T, w *world) {
		double := map[string]bool{}
		reversed := false
		w.through(t, func(plain http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				answer, err := plain.RoundTrip(r)
				if err != nil || !strings.HasSuffix(r.URL.Path, "/retail/prices") {
					return answer, err
				}
				var page map[string]json.RawMessage
				var items []json.RawMessage
				if err := errors.Join(json.NewDecoder(answer.Body).Decode(&page), json.Unmarshal(page["Items"], &items)); err != nil {
					return nil, err
				}
				for _, raw := range items {
					var m meter
					if err := json.Unmarshal(raw, &m); err != nil {
						return nil, err
					}
					if !m.IsPrimaryMeterRegion && !strings.HasSuffix(m.ProductName, "Windows") {
						double[m.ArmSKUName] = true
					}
				}
				if reversed {
					slices.Reverse(items)
				}
				page["Items"], err = json.Marshal(items)
				if err != nil {
					return nil, err
				}
				body, err := json.Marshal(page)
				if err != nil {
					return nil, err
				}
				return answerWith(r, http.StatusOK, string(body)), nil
			})
		})
		for _, reversed = range []bool{false, true} {
			w.stop()
			w.start(t)
			n := 0
			for size := range double {
				want, ok := w.Server.Price(size, false)
				if it := w.sold(size); it != nil && ok {
					n++
					if got := priceOf(t, w.provider.Catalog(w.class), size, model.OnDemand); got != model.USD(want) {
						t.Errorf("reversed %t: %s costs %v, want %v, the primary meter's price", reversed, size, got, model.USD(want))
					}
				}
			}
			if n < 10 {
				t.Errorf("%d sizes have two meters, want some to look at", n)
			}
		}
	})
}

func TestTrap3FamilyRegionalAndSpotQuotaKeepFromAskingForWhatWouldNotFit(t *testing.T) {
	for name, row := range map[string]struct {
		quota map[string]int64
		left  string // the one capacity type that can be bought
	}{
		"family":        {map[string]int64{"standardDSv5Family": 3}, "spot"},
		"region":        {map[string]int64{"cores": 3}, "spot"},
		"spot":          {map[string]int64{"lowPriorityCores": 3}, "on-demand"},
		"spot and none": {map[string]int64{"lowPriorityCores": 3, "cores": 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for _, capacityType := range []string{"on-demand", "spot"} {
					want := model.Requirement{Key: model.LabelCapacityType, Operator: model.In, Values: []string{capacityType}}
					_, err := w.provider.Launch(t.Context(), w.order("general-"+capacityType[:2], sizes("Standard_D4s_v5"), want))
					if bought := err == nil; bought != (capacityType == row.left) {
						t.Errorf("%s: %v, want only %q to be bought", capacityType, err, row.left)
					}
					if err != nil && (!errors.Is(err, launch.ErrNoCandidate) || !strings.Contains(err.Error(), "quota")) {
						t.Errorf("%s: %v, want the quota named before Azure is asked", capacityType, err)
					}
				}
				if n := w.Server.Stats()["errors OperationNotAllowed"]; n != 0 {
					t.Errorf("Azure refused %d machines, want none asked for that do not fit", n)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, func(c *armsim.Config) { c.Quota = row.quota })
		})
	}
}

func TestTrap4ABurstDoesNotOverrunAFamilyWhoseUsageAzureCountsLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { // usages lag by a minute here
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				order := w.order(fmt.Sprintf("general-%02d", i), sizes("Standard_D4s_v4", "Standard_D4s_v5"), onDemand())
				if _, err := w.provider.Launch(t.Context(), order); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		machines, err := w.provider.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, m := range machines {
			count[m.Size]++
		}
		if count["Standard_D4s_v4"] != 5 || count["Standard_D4s_v5"] != 5 {
			t.Errorf("bought are %v, want as many of the first family as fit, and the rest of the other", count)
		}
		if n := w.Server.Stats()["errors OperationNotAllowed"]; n != 0 {
			t.Errorf("Azure refused %d machines of the burst, want none", n)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic, func(c *armsim.Config) { c.Quota = map[string]int64{"standardDSv4Family": 20} })
}

func TestTrap7And8ExactResourcesCountFractionsOfMemoryAndKeepTheEvictedDiskFree(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.through(t, func(plain http.RoundTripper) http.RoundTripper { return fractional{plain} })
		for _, exact := range []bool{false, true} {
			w.stop()
			w.config.ExactResources = exact
			w.start(t)
			it := w.sold("Standard_D4s_v5")
			gib, disk := int64(15)<<30, int64(128_000_000_000)
			if exact {
				gib, disk = 31<<29, 115_200_000_000 // 15.5 GiB, and nine tenths
			}
			want := gib - (gib*75+999)/1000 // the share that machines never report
			allocatable := it.Allocatable()
			if got := it.Capacity.Get(model.Memory); got != want {
				t.Errorf("exact %t: %d bytes of 15.5 GiB, want %d", exact, got, want)
			}
			if got := allocatable.Get(model.EphemeralStorage); got != disk {
				t.Errorf("exact %t: %d bytes of disk for pods, want %d", exact, got, disk)
			}
			claim := fmt.Sprintf("general-%t", exact)
			if _, err := w.provider.Launch(t.Context(), w.order(claim, sizes("Standard_D4s_v5"), onDemand())); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			for _, m := range w.Server.Machines() {
				if strings.HasSuffix(m.ID, claim) && strings.Contains(string(m.CustomData), "nodefs.available<10%") != exact {
					t.Errorf("exact %t: the kubelet evicts otherwise than was planned with:\n%s", exact, m.CustomData)
				}
			}
		}
		w.deleteAll(t)
	})
}

// fractional is Azure with half a GiB less in a size.
type fractional struct{ http.RoundTripper }

func (f fractional) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/skus") {
		return answer, err
	}
	var page struct {
		Value []map[string]any `json:"value"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		return nil, err
	}
	for _, sku := range page.Value {
		capabilities, _ := sku["capabilities"].([]any)
		for _, c := range capabilities {
			if pair, _ := c.(map[string]any); sku["name"] == "Standard_D4s_v5" && pair["name"] == "MemoryGB" {
				pair["value"] = "15.5"
			}
		}
	}
	body, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	return answerWith(r, http.StatusOK, string(body)), nil
}

func TestTrap15And20SizesThatNoTableKnowsAreSoldAtTheirRetailPriceAndBought(t *testing.T) {
	for nap, row := range map[string]struct {
		azure, manufacturer, gpu string
		gpus                     int64
	}{
		"Standard_D4s_v9":           {"Standard_D4s_v5", "", "", 0},
		"Standard_NC24ads_B900_v9":  {"Standard_NC24ads_A100_v4", instancetype.NVIDIA, "B900", 1},
		"Standard_NC48ads_A1000_v9": {"Standard_NC48ads_A100_v4", instancetype.NVIDIA, "A1000", 2},
	} {
		t.Run(nap, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				if _, known := w.Server.Catalogue().Size(nap); known {
					t.Fatalf("the tables know %s", nap)
				}
				w.through(t, func(plain http.RoundTripper) http.RoundTripper { return renamed{plain, row.azure, nap} })
				it := w.sold(nap)
				if it == nil {
					t.Fatal("it is not sold")
				}
				price, _ := w.Server.Price(row.azure, false)
				if got := priceOf(t, w.provider.Catalog(w.class), nap, model.OnDemand); got != model.USD(price) {
					t.Errorf("it costs %v, want its retail price %v", got, model.USD(price))
				}
				gpus := it.Capacity.Get(instancetype.Axes().Index("nvidia.com/gpu"))
				if it.Labels[instancetype.LabelSKUGPUManufacturer] != row.manufacturer || it.Labels[instancetype.LabelSKUGPUName] != row.gpu || gpus != row.gpus {
					t.Errorf("it has %d GPUs, labels %v; want %d of %s %s", gpus, it.Labels, row.gpus, row.manufacturer, row.gpu)
				}
				if m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes(nap), onDemand())); err != nil || m.Size != nap {
					t.Errorf("bought %+v, %v", m, err)
				}
				w.deleteAll(t)
				w.noLeaks(t)
			}, allSizes)
		})
	}
}

func TestTrap18AZoneThatAzureRefusedKeepsItsLabelsAndSaysUntilWhen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5"}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand(), zones("eastus-1"))); err == nil {
			t.Fatal("it was bought")
		}
		until := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04") // to the minute
		seen := map[string]bool{}
		for _, o := range w.sold("Standard_D4s_v5").Offerings {
			seen[o.Zone] = true
			refused := o.Zone == "eastus-1"
			if o.Available == refused || refused && (!strings.Contains(o.Unavailable, "ZonalAllocationFailed") || !strings.Contains(o.Unavailable, until)) {
				t.Errorf("%s in %s: available %t, %q; want the refused zone alone not to be, until %s", o.CapacityType, o.Zone, o.Available, o.Unavailable, until)
			}
		}
		if len(seen) != 4 {
			t.Errorf("the size is offered in %v, want three zones and the region", seen)
		}
	})
}

func TestTrap19AfterARefusalALargerSizeOfTheFamilyIsBoughtWithinMinutes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Code: "ZonalAllocationFailed", Size: "Standard_D4s_v5"}); err != nil {
			t.Fatal(err)
		}
		buy := func(claim, size string) error {
			_, err := w.provider.Launch(t.Context(), w.order(claim, sizes(size), onDemand(), zones("eastus-1")))
			return err
		}
		if err := buy("general-small", "Standard_D4s_v5"); err == nil {
			t.Fatal("it was bought")
		}
		if err := buy("general-large", "Standard_D8s_v5"); !errors.Is(err, launch.ErrNoCandidate) {
			t.Errorf("right after, a larger size: %v, want that it is not asked for", err)
		}
		time.Sleep(3 * time.Minute)
		if err := buy("general-large", "Standard_D8s_v5"); err != nil {
			t.Errorf("three minutes later, a larger size: %v", err)
		}
		if err := buy("general-small", "Standard_D4s_v5"); !errors.Is(err, launch.ErrNoCandidate) {
			t.Errorf("three minutes later, the refused size: %v, want that it is not asked for", err)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestTrap22EverySizeOfTheRegionIsSoldOrSaysWhyNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		built := w.provider.Catalog(w.class)
		reason := map[string]string{}
		for _, e := range built.Excluded {
			reason[e.Size] = e.Reason
		}
		all := 0
		for _, size := range w.Server.Catalogue().Sizes() {
			if w.Server.Catalogue().Zones(size.Name, w.Region) == nil {
				continue // not of this region
			}
			all++
			if sold := w.sold(size.Name) != nil; sold == (reason[size.Name] != "") {
				t.Errorf("%s: sold %t, left out because %q; want one of them", size.Name, sold, reason[size.Name])
			}
		}
		if all != len(built.Catalog.InstanceTypes)+len(built.Excluded) || all < 500 {
			t.Errorf("Azure has %d sizes, %d are sold and %d left out", all, len(built.Catalog.InstanceTypes), len(built.Excluded))
		}
		if got := reason["Standard_D4s_v4"]; !strings.Contains(got, "subscription may not") {
			t.Errorf("a size that the subscription may not use is left out because %q", got)
		}
	}, allSizes, func(c *armsim.Config) { c.Restrictions = []armsim.Restriction{{Size: "Standard_D4s_v4"}} })
}

func TestTrap9MachinesOfANationalCloudBootFromDataThatNameNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.stop()
		w.config.Cloud = config.Cloud{Name: config.CloudUSGov, TenantID: w.config.Cloud.TenantID}
		w.config.ClusterEndpoint = "https://nap.hcp.usgovvirginia.cx.aks.containerservice.azure.us:443"
		hosts := map[string]bool{}
		var mu sync.Mutex
		plain := w.HTTP.Transport
		w.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			hosts[r.URL.Host] = true
			mu.Unlock()
			return plain.RoundTrip(r)
		})}
		w.start(t)
		if _, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		data := string(w.Server.Machines()[0].CustomData)
		for _, foreign := range []string{"AzurePublicCloud", "azureedge.net", "windows.net", "management.azure.com", "mcr.microsoft.com", "CNI_"} {
			if strings.Contains(data, foreign) {
				t.Errorf("the boot data contain %s:\n%s", foreign, data)
			}
		}
		if !strings.Contains(data, "API_SERVER_NAME='https://nap.hcp.usgovvirginia.cx.aks.containerservice.azure.us:443'") {
			t.Errorf("the boot data lack the API server:\n%s", data)
		}
		if len(hosts) != 1 || !hosts["management.usgovcloudapi.net"] {
			t.Errorf("asked were %v, want the cloud's own Resource Manager alone", hosts)
		}
		if it := w.sold("Standard_D4s_v5"); it == nil || it.Offerings[0].Price == 0 {
			t.Errorf("without retail prices the size is %+v, want it at the price of the embedded table", it)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	})
}

func TestTrap23SizesThatTakeNVMeAloneAreBought(t *testing.T) {
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
