package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/pages"
)

// What "nap prices fetch" prints, as the page types it and with the name of the region as people
// write it, is a file that --prices-file reads.
func TestFetchedPricesAreTerms(t *testing.T) {
	typed := [][]string{{"prices", "fetch", "--region", "Sweden Central"}}
	for _, c := range pages.Of(t, "../..") {
		line, _, _ := strings.Cut(c.Text, " > ")
		typed = append(typed, strings.Fields(line)[1:])
	}
	for _, args := range typed {
		t.Run(strings.Join(args, " "), func(t *testing.T) { fetchesTerms(t, args) })
	}
}

// fetchesTerms has a command fetch prices of swedencentral.
func fetchesTerms(t *testing.T, args []string) {
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
	code := Main(t.Context(), append(args, "--endpoint", list.URL), "test",
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

// retailList answers with two sizes of a region, one of them sold as spot, too.
func retailList(t *testing.T) string {
	t.Helper()
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"Items":[
			{"meterId":"m-1","armSkuName":"Standard_D2s_v5","retailPrice":0.102,"skuName":"D2s v5","unitOfMeasure":"1 Hour"},
			{"meterId":"m-2","armSkuName":"Standard_D2s_v5","retailPrice":0.021,"skuName":"D2s v5 Spot","unitOfMeasure":"1 Hour"},
			{"meterId":"m-3","armSkuName":"Standard_D4s_v5","retailPrice":0.204,"skuName":"D4s v5","unitOfMeasure":"1 Hour"}]}`)
	}))
	t.Cleanup(list.Close)
	return list.URL
}

// importPrices runs "nap prices import" in a folder with files.
func importPrices(t *testing.T, files map[string]string, args ...string) (out, errs string, code int) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o, e bytes.Buffer
	code = Main(t.Context(), append([]string{"prices", "import", "--region", "East US"}, args...), "test",
		command.Streams{In: strings.NewReader(files["-"]), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

const importedSheet = "meterId,unitOfMeasure,unitPrice,currency\nM-1,100 Hours,8.0,USD\nm-2,1 Hour,0.02,USD\ndisk,1/Month,20,USD\n"

const importedReservations = `[{"name":"r","location":"eastus","sku":{"name":"Standard_D4s_v5"},
	"properties":{"reservedResourceType":"VirtualMachines","quantity":2,"provisioningState":"Succeeded"}}]`

func TestImportedPricesAreTerms(t *testing.T) {
	files := map[string]string{"sheet.csv": importedSheet, "-": importedReservations}
	out, errs, code := importPrices(t, files, "--endpoint", retailList(t), "--price-sheet", "sheet.csv", "--reservations", "-")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	terms, err := price.ParseTerms([]byte(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(terms.Prices) != 1 || terms.Prices[0].Size != "Standard_D2s_v5" || *terms.Prices[0].OnDemand != 0.08 || *terms.Prices[0].Spot != 0.02 ||
		len(terms.Reservations) != 1 || terms.Reservations[0].Count != 2 {
		t.Errorf("got\n%s", out)
	}
	for _, want := range []string{
		"2 reserved machines of 1 sizes in eastus\n", "2 of 3 prices of virtual machines in eastus are in sheet.csv; 1 stay at the retail price\n",
		"lines that count for nothing: 1 not by the hour\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
}

func TestImportTellsOfPricesThatEnded(t *testing.T) {
	old := "meterId,unitOfMeasure,unitPrice,currency,effectiveEndDate\nm-1,1 Hour,0.08,USD,2020-01-31\nm-2,1 Hour,0.02,USD,\n"
	out, errs, code := importPrices(t, map[string]string{"sheet.csv": old}, "--endpoint", retailList(t), "--price-sheet", "sheet.csv")
	if code != 0 || !strings.Contains(out, "0.08") || !strings.Contains(errs, "1 prices of the sheet ended before today and are used all the same") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

// The same pods cost what the sheet says.
func TestPlanTakesImportedPrices(t *testing.T) {
	out, errs, code := importPrices(t, map[string]string{"sheet.csv": importedSheet}, "--endpoint", retailList(t), "--price-sheet", "sheet.csv")
	if code != 0 {
		t.Fatal(errs)
	}
	if err := os.WriteFile("prices.yaml", []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	code = Main(t.Context(), []string{"explain", "offer", "Standard_D2s_v5", "--region", "eastus", "--prices-file", "prices.yaml"}, "test",
		command.Streams{In: strings.NewReader(""), Out: &told, Err: &told})
	if code != 0 || !strings.Contains(told.String(), "$0.080") {
		t.Errorf("exit code %d:\n%s", code, told.String())
	}
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	list := retailList(t)
	files := map[string]string{
		"euro.csv": strings.ReplaceAll(importedSheet, "USD", "EUR"), "disks.csv": "meterId,unitOfMeasure,unitPrice,currency\nd,1 Hour,1,USD\n",
	}
	for want, args := range map[string][]string{
		"nothing to import: give --subscription SUBSCRIPTION to read from Azure, ":           {},
		"--price-sheet nowhere.csv: no such file or directory: give the path of a file":      {"--price-sheet", "nowhere.csv"},
		`--price-sheet euro.csv: line 2: currency is "EUR"; nap plans in US dollars: `:       {"--price-sheet", "euro.csv"},
		"--price-sheet disks.csv: none of the 3 meters of virtual machines in eastus has a ": {"--price-sheet", "disks.csv"},
		"--reservations disks.csv: it is no list of reservations: ":                          {"--reservations", "disks.csv"},
		`--output-file: got "yaml", which is no file's name; `:                               {"--reservations", "r", "-o", "yaml"},
		`--endpoint: got "list", must be a URL that begins with https:// or http://`:         {"--reservations", "r", "--endpoint", "list"},
	} {
		out, errs, code := importPrices(t, files, append([]string{"--endpoint", list}, args...)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, "nap: "+want) {
			t.Errorf("%v: exit code %d, %q, want %q", args, code, errs, want)
		}
	}
}
