package providertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/model"
)

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

func TestTrap1RetailPriceChangeReachesNextCatalog(t *testing.T) {
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

func TestTrap2PriceIsPrimaryMeterInAnyOrder(t *testing.T) {
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
	}, dSizes)
}

// TestRestartWithoutRetailPrices: spot machines cost an estimate until a controller that starts
// has the prices which the one before had read.
func TestRestartWithoutRetailPrices(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spot := func() model.Money { return priceOf(t, w.provider.Catalog(w.class), "Standard_D4s_v5", model.Spot) }
		if err := w.Server.SetPrice("Standard_D4s_v5", true, 0.111); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12*time.Hour + time.Minute) // prices are read twice a day
		text, err := w.provider.Supply().PriceMemory().Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if facts := w.provider.MarketFacts(); facts.SpotEstimated || spot() != model.USD(0.111) {
			t.Errorf("spot costs %v, from %q, estimated: %v", spot(), facts.Prices, facts.SpotEstimated)
		}
		w.stop()
		if _, err := w.Server.AddFault(armsim.Fault{
			Kind: armsim.FaultError, Operation: "retail/prices", Status: http.StatusServiceUnavailable, Code: "ServerBusy",
		}); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		onDemand := priceOf(t, w.provider.Catalog(w.class), "Standard_D4s_v5", model.OnDemand)
		if facts := w.provider.MarketFacts(); !facts.SpotEstimated || spot() > onDemand*6/10 {
			t.Errorf("after the restart spot costs %v, on-demand %v, from %q, estimated: %v", spot(), onDemand, facts.Prices, facts.SpotEstimated)
		}
		if err := w.provider.Supply().PriceMemory().Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		if facts := w.provider.MarketFacts(); facts.SpotEstimated || spot() != model.USD(0.111) {
			t.Errorf("with the prices of before spot costs %v, from %q, estimated: %v", spot(), facts.Prices, facts.SpotEstimated)
		}
	}, allSizes)
}
