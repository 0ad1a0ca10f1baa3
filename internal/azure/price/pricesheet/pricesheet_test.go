package pricesheet

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/price"
)

var today = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// The columns are those of Microsoft's pages on the sheets, in another order.
const (
	enterprise = "\xef\xbb\xbfEnrollment 100,,,,\r\n" +
		"Meter ID,Meter Name,Unit of Measure,Unit Price,Currency Code,Price Type,Effective Start Date\r\n" +
		"AAAA-1,D2s v5,100 Hours,9.0,USD,Consumption,2026-11-01\r\n" +
		"aaaa-1,D2s v5,1 Hour,500,USD,ReservedInstance,2026-11-01\r\n" +
		"aaaa-1,D2s v5,1 Hour,0.07,USD,DevTestConsumption,2026-11-01\r\n" +
		"bbbb-2,P10 Disks,1/Month,19.71,USD,Consumption,2026-11-01\r\n"
	customer = "billingAccountId,meterId,meterName,unitOfMeasure,unitPrice,currency,tierMinimumUnits,effectiveStartDate,priceType\n" +
		"x,aaaa-1,D2s v5,1 Hour,0.080,USD,1000,10/01/2026,Consumption\n" +
		"x,aaaa-1,D2s v5,1 Hour,0.095,USD,0,10/01/2026,Consumption\n" +
		"x,aaaa-1,D2s v5,1 Hour,0.090,USD,0,11/01/2026,Consumption\n" +
		"x,aaaa-1,D2s v5,1 Hour,0.010,USD,0,12/01/2026,Consumption\n"
	api = `{"properties":{"nextLink":"https://management.azure.com/next","pricesheets":[
		{"meterId":"AAAA-1","unitOfMeasure":"100 Hours","includedQuantity":0,"partNumber":"N7H-00402","unitPrice":9.00,"currencyCode":"USD"}]}}`
	az = `[{"meterId":"aaaa-1","unitOfMeasure":"10 Hours","unitPrice":"0.9","currencyCode":"usd"}]`
)

func TestSheetsOfAllForms(t *testing.T) {
	for name, text := range map[string]string{"enterprise": enterprise, "customer": customer, "api": api, "az": az} {
		s := New()
		if err := s.Read(strings.NewReader(text), today); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, ok := s.Hourly("Aaaa-1"); !ok || got < 0.0899 || got > 0.0901 {
			t.Errorf("%s: %v, %v, want $0.09 an hour", name, got, ok)
		}
		if len(s.hourly) != 1 || s.More != (name == "api") {
			t.Errorf("%s: %d meters, more %v", name, len(s.hourly), s.More)
		}
		want := map[string]string{
			"enterprise": "1 not by the hour, 1 of price type DevTestConsumption, 1 of price type ReservedInstance", "customer": "1 not in force yet",
		}
		if got := s.WhyUnused(); got != want[name] {
			t.Errorf("%s: unused %q, want %q", name, got, want[name])
		}
	}
}

// A price that ended is used where there is no other, and counted; its last day is part of it.
func TestPricesThatEndedCountLast(t *testing.T) {
	const columns = "meterId,unitOfMeasure,unitPrice,currency,effectiveStartDate,effectiveEndDate\n"
	const going, over = "m,1 Hour,0.09,USD,2026-01-01,2026-11-01\n", "m,1 Hour,0.01,USD,2026-10-15,2026-10-30\n"
	for lines, want := range map[string]struct {
		dollars float64
		ended   int
	}{going + over: {0.09, 0}, over + going: {0.09, 0}, over: {0.01, 1}, going: {0.09, 0}} {
		s := New()
		if err := s.Read(strings.NewReader(columns+lines), today); err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Hourly("m"); !ok || got != want.dollars || s.Ended() != want.ended {
			t.Errorf("%q: $%v, %d ended, want $%v, %d", lines, got, s.Ended(), want.dollars, want.ended)
		}
	}
}

func TestPagesOfSheetAddUp(t *testing.T) {
	s := New()
	for _, text := range []string{api, strings.ReplaceAll(az, "aaaa-1", "cccc-3")} {
		if err := s.Read(strings.NewReader(text), today); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.hourly) != 2 {
		t.Errorf("%d meters, want those of both pages", len(s.hourly))
	}
}

func TestSheetsThatAreWrong(t *testing.T) {
	columns := "meterId,unitOfMeasure,unitPrice,currency,effectiveStartDate\n"
	for text, want := range map[string]string{
		"":                                "it is no price sheet: it must be CSV with the columns meterId,",
		"a,b\n1,2\n":                      "it is no price sheet: it must be CSV",
		"{}":                              "it is no price sheet",
		"PK\x03\x04\x14\x00":              "it is no zip archive: ",
		"\x1f\x8b\x08\x00":                "it is compressed with gzip: unpack it, and give each file",
		`{"pricesheets":7}`:               "it is no JSON of a price sheet: ",
		columns + "m,1 Hour,cheap,USD,\n": `line 2: unitPrice is "cheap"; must be a number such as 0.096, 0 or more`,
		columns + "m,1 Hour,-1,USD,\n":    `line 2: unitPrice is "-1"; must be`,
		columns + "m,1 Hour,1,EUR,\n":     `line 2: currency is "EUR"; nap plans in US dollars`,
		columns + "m,1 Hour,1,USD,soon\n": `line 2: effectiveStartDate is "soon"; must be a date such as 2026-11-01`,
		"effectiveEndDate," + columns + "soon,m,1 Hour,1,USD,\n":   `line 2: effectiveEndDate is "soon"; must be a date such as 2026-11-01`,
		columns + "m,0 Hours,1,USD,\n":                             `line 2: unitOfMeasure is "0 Hours"; must be hours, such as 1 Hour`,
		`[{"meterId":"m","unitPrice":1,"unitOfMeasure":"1 Hour"}]`: `pricesheets[0]: currency is ""`,
	} {
		err := New().Read(strings.NewReader(text), today)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

const reservations = `[
	{"name":"r1/a","location":"eastus","sku":{"name":"Standard_D4s_v5"},"properties":{"displayName":"web","reservedResourceType":"VirtualMachines",
	 "quantity":3,"provisioningState":"Succeeded","expiryDate":"2027-06-01","appliedScopeType":"Shared","instanceFlexibility":"Off"}},
	{"name":"r2","location":"East US","sku":{"name":"Standard_D4s_v5"},"properties":{"reservedResourceType":"VirtualMachines",
	 "quantity":2,"provisioningState":"Succeeded","appliedScopeType":"Single","appliedScopes":["/subscriptions/1"],"instanceFlexibility":"On"}},
	{"name":"r3","location":"westeurope","sku":{"name":"Standard_D8s_v5"},"properties":{"reservedResourceType":"VirtualMachines","quantity":1,"provisioningState":"Succeeded"}},
	{"name":"r4","location":"eastus","sku":{"name":"Standard_D8s_v5"},"properties":{"reservedResourceType":"VirtualMachines","quantity":1,"provisioningState":"Succeeded","expiryDate":"2026-10-31"}},
	{"name":"r5","location":"eastus","sku":{"name":"Standard_D8s_v5"},"properties":{"reservedResourceType":"VirtualMachines","quantity":1,"provisioningState":"Cancelled"}},
	{"name":"r6","location":"eastus","sku":{"name":"P30"},"properties":{"reservedResourceType":"ManagedDisk","quantity":1,"provisioningState":"Succeeded"}}]`

func TestReservationsOfRegionCount(t *testing.T) {
	for _, text := range []string{reservations, `{"value":` + reservations + `}`} {
		got, err := ReadReservations(strings.NewReader(text), Place{Region: "eastus"}, today)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]price.Reservation{{Size: "Standard_D4s_v5", Count: 5}}, got.Machines); d != "" {
			t.Error(d)
		}
		for i, want := range []string{
			"reservation r2 (2 Standard_D4s_v5): it pays for machines in /subscriptions/1 alone",
			"reservation r3 (1 Standard_D8s_v5) counts for nothing: it is for region westeurope",
			"reservation r4 (1 Standard_D8s_v5) counts for nothing: it ended on 2026-10-31",
			"reservation r5 (1 Standard_D8s_v5) counts for nothing: its state is Cancelled",
			"reservation r6 (1 P30) counts for nothing: it is of ManagedDisk",
		} {
			if i >= len(got.Notes) || !strings.HasPrefix(got.Notes[i], want) {
				t.Errorf("notes %q, want one that begins with %q", got.Notes, want)
			}
		}
	}
}

func TestReservationsThatAreWrong(t *testing.T) {
	one := `[{"name":"r","location":"eastus","sku":{"name":%q},"properties":{"reservedResourceType":"VirtualMachines","provisioningState":"Succeeded",%s}}]`
	for text, want := range map[string]string{
		"reservations":         "it is no list of reservations: ",
		`{"nextLink":"there"}`: "it is one page of several: the next is there; give the whole list",
		strings.NewReplacer("%q", `""`, "%s", `"quantity":1`).Replace(one):                      `reservation r: sku.name is "" and properties.quantity is 1`,
		strings.NewReplacer("%q", `"S"`, "%s", `"quantity":1,"expiryDate":"soon"`).Replace(one): `reservation r (1 S): expiryDate is "soon"; must be a date`,
	} {
		_, err := ReadReservations(strings.NewReader(text), Place{Region: "eastus"}, today)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// zipped is an archive of files, each a name and a text.
func zipped(t *testing.T, files ...[2]string) string {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		into, err := archive.Create(f[0])
		if err == nil {
			_, err = into.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Azure gives long sheets as an archive of several files.
func TestFilesOfArchiveAddUp(t *testing.T) {
	s := New()
	err := s.Read(strings.NewReader(zipped(t, [2]string{"part-0.csv", customer}, [2]string{"manifest.json", "{}"},
		[2]string{"Part-1.CSV", strings.ReplaceAll(enterprise, "AAAA-1", "cccc-3")})), today)
	if err != nil || len(s.hourly) != 2 {
		t.Errorf("%d meters, %v, want those of both files", len(s.hourly), err)
	}
	for want, text := range map[string]string{
		`part-0.csv in it: line 6: currency is "EUR"`: zipped(t, [2]string{"part-0.csv", customer + "x,m,m,1 Hour,1,EUR,0,,\n"}),
		"part-0.csv in it: it is no price sheet":      zipped(t, [2]string{"part-0.csv", "a,b\n"}),
		"the archive has no .csv file":                zipped(t, [2]string{"manifest.json", "{}"}),
	} {
		if err := New().Read(strings.NewReader(text), today); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Where the subscription is known, reservations of others count for nothing.
func TestReservationsOfSubscriptionCount(t *testing.T) {
	one := func(name, scopes string) string {
		return `{"name":"` + name + `","location":"eastus","sku":{"name":"S"},"properties":{"reservedResourceType":"VirtualMachines",
			"quantity":1,"provisioningState":"Succeeded","expiryDate":"2027-0` + name + `-01",` + scopes + `}}`
	}
	list := "[" + strings.Join([]string{
		one("5", `"appliedScopeType":"Shared"`),
		one("4", `"appliedScopeType":"Single","appliedScopes":["/subscriptions/SUB-1"]`),
		one("3", `"appliedScopeType":"Single","appliedScopes":["/subscriptions/sub-1/resourceGroups/nodes"]`),
		one("2", `"appliedScopeType":"ManagementGroup"`),
		one("1", `"appliedScopeType":"Single","appliedScopes":["/subscriptions/sub-12"]`),
	}, ",") + "]"
	got, err := ReadReservations(strings.NewReader(list), Place{Region: "eastus", Subscription: "sub-1"}, today)
	if err != nil {
		t.Fatal(err)
	}
	want := &Reservations{Machines: []price.Reservation{{Size: "S", Count: 4}}, Until: time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC), Notes: []string{
		"reservation 3 (1 S): it pays for machines in /subscriptions/sub-1/resourceGroups/nodes alone: take it out of the file where the cluster is elsewhere",
		"reservation 2 (1 S): it pays for machines in one management group alone: take it out of the file where the cluster is elsewhere",
		"reservation 1 (1 S) counts for nothing: it pays for machines in /subscriptions/sub-12 alone",
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
