package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

func TestTrap7And8MemoryFractionsAndDiskOfMachines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.through(t, func(plain http.RoundTripper) http.RoundTripper { return fractional{plain} })
		for _, exact := range []bool{false, true} {
			w.stop()
			w.config.ExactResources = exact
			w.start(t)
			it := w.sold("Standard_D4s_v5")
			gib, disk := int64(15)<<30, int64(115_200_000_000) // nine tenths
			if exact {
				gib = 31 << 29 // 15.5 GiB
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
				if strings.HasSuffix(m.ID, claim) && !strings.Contains(nodeConfig(t, m.CustomData), `nodefs.available<10%`) {
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

func TestTrap15And20UnknownSizesOfferedAtRetailPrice(t *testing.T) {
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
				if _, known := w.Server.SKUTable().Size(nap); known {
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

func TestTrap22EverySizeIsOfferedOrExcludedWithReason(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		built := w.provider.Catalog(w.class)
		reason := map[string]string{}
		for _, e := range built.Excluded {
			reason[e.Size] = e.Reason
		}
		all := 0
		for _, size := range w.Server.SKUTable().Sizes() {
			if w.Server.SKUTable().Zones(size.Name, w.Region) == nil {
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
