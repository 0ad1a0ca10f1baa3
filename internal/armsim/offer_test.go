package armsim_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armsubscriptions"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestSKUsHaveCapabilitiesAndRestrictions(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) {
		c.Restrictions = []armsim.Restriction{{Size: "Standard_D4ds_v6", Zones: []string{"3"}}}
	})
	found := map[string]*armcompute.ResourceSKU{}
	machines := 0
	for pager := u.skus.NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: to.Ptr("location eq 'eastus'")}); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Value {
			found[*s.Name] = s
			if *s.ResourceType == "virtualMachines" {
				machines++
			}
		}
	}
	if machines != 774 {
		t.Errorf("%d sizes in eastus, want 774", machines)
	}
	s := found["Standard_D4ds_v6"]
	caps := map[string]string{}
	for _, c := range s.Capabilities {
		caps[*c.Name] = *c.Value
	}
	want := map[string]string{
		"vCPUs": "4", "MemoryGB": "16", "CpuArchitectureType": "x64", "HyperVGenerations": "V2", "PremiumIO": "True",
		"AcceleratedNetworkingEnabled": "True", "EphemeralOSDiskSupported": "True", "MaxResourceVolumeMB": "0", "NvmeDiskSizeInMiB": "225280",
		"SupportedEphemeralOSDiskPlacements": "NvmeDisk", "MaxDataDiskCount": "12",
		"EncryptionAtHostSupported": "True", "DiskControllerTypes": "NVMe",
	}
	for name, value := range want {
		if caps[name] != value {
			t.Errorf("%s: %q, want %q", name, caps[name], value)
		}
	}
	if *s.Family != "StandardDdsv6Family" || *s.Tier != "Standard" || *s.Size != "D4ds_v6" {
		t.Errorf("family %s, tier %s, size %s", *s.Family, *s.Tier, *s.Size)
	}
	if len(s.Restrictions) != 1 || *s.Restrictions[0].Type != armcompute.ResourceSKURestrictionsTypeZone ||
		*s.Restrictions[0].RestrictionInfo.Zones[0] != "3" ||
		*s.Restrictions[0].ReasonCode != armcompute.ResourceSKURestrictionsReasonCodeNotAvailableForSubscription {
		t.Errorf("restrictions %+v", s.Restrictions)
	}
	zones := found["Standard_D4s_v5"].LocationInfo[0]
	if len(zones.Zones) != 3 || *zones.ZoneDetails[0].Capabilities[0].Name != "UltraSSDAvailable" {
		t.Errorf("zones %v, details %v", zones.Zones, zones.ZoneDetails)
	}
}

func TestLocationsMapZonesToPhysicalZones(t *testing.T) {
	env := armtest.New(t)
	c, err := armsubscriptions.NewClient(env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.NewListLocationsPager(env.SubscriptionID, nil).NextPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Value {
		if *l.Name == "eastus" && len(l.AvailabilityZoneMappings) == 3 &&
			strings.HasPrefix(*l.AvailabilityZoneMappings[0].PhysicalZone, "eastus-az") {
			return
		}
	}
	t.Error("no zone mappings of eastus")
}

func TestImageVersionsAppearWhenPublished(t *testing.T) {
	env := armtest.New(t)
	c, err := armcompute.NewCommunityGalleryImageVersionsClient(env.SubscriptionID, env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	versions := func() (names []string) {
		page, err := c.NewListPager(env.Region, "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2", "2204gen2containerd", nil).NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Value {
			names = append(names, *v.Name+" "+v.Properties.PublishedDate.Format("2006-01-02"))
		}
		return names
	}
	env.Server.PublishImages("202607.01.0")
	want := []string{"202605.12.0 2026-05-12", "202606.02.0 2026-06-02", "202606.09.0 2026-06-09", "202607.01.0 2026-07-01"}
	if diff := cmp.Diff(want, versions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = c.NewListPager(env.Region, "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2", "1804", nil).NextPage(t.Context())
	wantStatus(t, err, http.StatusNotFound)
}

// meter is what a reader of the price API looks at.
type meter struct {
	ArmSKUName           string  `json:"armSkuName"`
	SKUName              string  `json:"skuName"`
	MeterName            string  `json:"meterName"`
	ProductName          string  `json:"productName"`
	RetailPrice          float64 `json:"retailPrice"`
	IsPrimaryMeterRegion bool    `json:"isPrimaryMeterRegion"`
}

// prices reads all pages.
func prices(t *testing.T, env *armtest.Env, filter string) (all []meter, pages int) {
	t.Helper()
	next := armtest.Endpoint + "/api/retail/prices?api-version=2023-01-01-preview&$filter=" + url.QueryEscape(filter)
	for next != "" {
		resp, err := env.HTTP.Get(next)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Items        []meter
			NextPageLink string
			Count        int
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || page.Count != len(page.Items) {
			t.Fatalf("%d %v: %d items said to be %d", resp.StatusCode, err, len(page.Items), page.Count)
		}
		all = append(all, page.Items...)
		next = page.NextPageLink
		pages++
	}
	return all, pages
}

func TestRetailPricesArePagedWithSeveralMetersPerSize(t *testing.T) {
	env := armtest.New(t)
	all, pages := prices(t, env, "priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' "+
		"and serviceName eq 'Virtual Machines' and armRegionName eq 'eastus'")
	if pages < 3 || len(all) <= (pages-1)*1000 {
		t.Errorf("%d items on %d pages", len(all), pages)
	}
	onDemand, spot, others := map[string][]float64{}, map[string]float64{}, 0
	for _, m := range all {
		switch {
		case strings.HasSuffix(m.ProductName, " Windows"), strings.HasSuffix(m.MeterName, " Low Priority"):
			others++
		case strings.HasSuffix(m.SKUName, " Spot"):
			spot[m.ArmSKUName] = m.RetailPrice
		case m.IsPrimaryMeterRegion:
			onDemand[m.ArmSKUName] = append(onDemand[m.ArmSKUName], m.RetailPrice)
		}
	}
	if len(onDemand) != 774 || others < 2*774 {
		t.Errorf("%d sizes and %d meters to skip", len(onDemand), others)
	}
	if !slices.Equal(onDemand["Standard_D4s_v5"], []float64{0.192}) || spot["Standard_D4s_v5"] <= 0 || spot["Standard_D4s_v5"] > 0.11 {
		t.Errorf("Standard_D4s_v5: %v, spot %v", onDemand["Standard_D4s_v5"], spot["Standard_D4s_v5"])
	}
	if spot["Standard_B4as_v2"] != 0 {
		t.Error("a burstable size has a spot price")
	}
}

func TestRetailPriceChangeIsServedAtOnce(t *testing.T) {
	env := armtest.New(t)
	if err := env.Server.SetPrice("Standard_D4s_v5", false, 0.5); err != nil {
		t.Fatal(err)
	}
	all, _ := prices(t, env, "armRegionName eq 'eastus' and armSkuName eq 'Standard_D4s_v5'")
	if !slices.ContainsFunc(all, func(m meter) bool { return m.RetailPrice == 0.5 }) {
		t.Errorf("meters %+v", all)
	}
	if err := env.Server.SetPrice("Standard_X", false, 1); err == nil {
		t.Error("a size that does not exist has a price")
	}
}

func TestPlacementScoresReflectCapacity(t *testing.T) {
	u := subscribe(t)
	u.fault(armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_D4s_v5", Zone: "2", Priority: "Spot"})
	body := `{"desiredLocations":["eastus"],"desiredSizes":[{"sku":"Standard_D4s_v5"},{"sku":"Standard_B4as_v2"}],"desiredCount":10,"availabilityZones":true}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, armtest.Endpoint+"/subscriptions/"+u.SubscriptionID+
		"/providers/Microsoft.Compute/locations/eastus/placementScores/spot/generate?api-version=2025-06-05", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	token, _ := u.Server.Token("")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := u.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		PlacementScores []struct {
			SKU, Score, AvailabilityZone string
			IsQuotaAvailable             bool
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	for _, s := range got.PlacementScores {
		switch {
		case strings.Contains(s.SKU, "B4as") && s.Score != "DataNotFoundOrStale",
			strings.Contains(s.SKU, "D4s") && (s.Score == "Low") != (s.AvailabilityZone == "2") && s.AvailabilityZone == "2",
			!s.IsQuotaAvailable:
			t.Errorf("%+v", s)
		}
	}
	if len(got.PlacementScores) < 4 {
		t.Errorf("%d scores", len(got.PlacementScores))
	}
}
