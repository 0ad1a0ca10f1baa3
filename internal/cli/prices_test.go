package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/cli/command"
)

// What "nap prices fetch" prints is a file that --prices-file reads.
func TestFetchedPricesAreTerms(t *testing.T) {
	var asked string
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("$filter")
		fmt.Fprint(w, `{"Items":[
			{"armSkuName":"Standard_D2s_v5","retailPrice":0.102,"productName":"Virtual Machines Dsv5 Series","skuName":"D2s v5","unitOfMeasure":"1 Hour"},
			{"armSkuName":"Standard_D2s_v5","retailPrice":0.021,"productName":"Virtual Machines Dsv5 Series","skuName":"D2s v5 Spot","unitOfMeasure":"1 Hour"},
			{"armSkuName":"Standard_D4s_v5","retailPrice":0.204,"productName":"Virtual Machines Dsv5 Series","skuName":"D4s v5","unitOfMeasure":"1 Hour"}]}`)
	}))
	defer list.Close()
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"prices", "fetch", "--region", "Sweden Central", "--endpoint", list.URL}, "test",
		command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	if code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if !strings.Contains(asked, "armRegionName eq 'swedencentral'") {
		t.Errorf("asked for %q", asked)
	}
	terms, err := price.ParseTerms(out.Bytes())
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(terms.Prices) != 2 || *terms.Prices[0].OnDemand != 0.102 || *terms.Prices[0].Spot != 0.021 || terms.Prices[1].Spot != nil {
		t.Errorf("got\n%s", out.String())
	}
}

func TestFetchSaysWhyThereAreNoPrices(t *testing.T) {
	list := httptest.NewServer(http.NotFoundHandler())
	defer list.Close()
	var errs bytes.Buffer
	code := Main(t.Context(), []string{"prices", "fetch", "--region", "eastus", "--endpoint", list.URL}, "test",
		command.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &errs})
	if code != 1 || !strings.Contains(errs.String(), "read retail prices of region eastus: ") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
