package armsim_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func TestClusterNetworkHasAKSNames(t *testing.T) {
	u := subscribe(t)
	f, err := armnetwork.NewClientFactory(u.SubscriptionID, u.Credential, u.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	lbs, err := f.NewLoadBalancersClient().NewListPager(u.NodeResourceGroup, nil).NextPage(t.Context())
	if err != nil || len(lbs.Value) != 1 || *lbs.Value[0].Name != "kubernetes" || len(lbs.Value[0].Properties.BackendAddressPools) != 2 {
		t.Errorf("load balancers %+v, %v", lbs.Value, err)
	}
	nsgs, err := f.NewSecurityGroupsClient().NewListPager(u.NodeResourceGroup, nil).NextPage(t.Context())
	if err != nil || len(nsgs.Value) != 1 || !regexp.MustCompile(`^aks-agentpool-\d{8}-nsg$`).MatchString(*nsgs.Value[0].Name) {
		t.Errorf("security groups %+v, %v", nsgs.Value, err)
	}
	vnets := f.NewVirtualNetworksClient()
	vnet, err := vnets.Get(t.Context(), u.NodeResourceGroup, "aks-vnet-10000001", nil)
	if err != nil || *vnet.Properties.Subnets[0].ID != u.SubnetID || vnet.Properties.ResourceGUID == nil {
		t.Errorf("network %+v, %v", vnet.Properties, err)
	}
	if _, err := u.nic("a"); err != nil {
		t.Fatal(err)
	}
	usage, err := vnets.NewListUsagePager(u.NodeResourceGroup, "aks-vnet-10000001", nil).NextPage(t.Context())
	if err != nil || len(usage.Value) != 1 || *usage.Value[0].CurrentValue != 1 || *usage.Value[0].Limit != 65536-5 {
		t.Errorf("usage %+v, %v", usage.Value, err)
	}
}

func TestListsArePaged(t *testing.T) {
	u := subscribe(t)
	const n = 1010
	names := map[string]bool{}
	for i := range n {
		name := "n" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		names[name] = true
		if _, err := u.nic(name); err != nil {
			t.Fatal(err)
		}
	}
	pages := 0
	for pager := u.nics.NewListPager(u.NodeResourceGroup, nil); pager.More(); pages++ {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Value {
			delete(names, *v.Name)
		}
	}
	if pages != 2 || len(names) != 0 {
		t.Errorf("%d pages, %d interfaces missing", pages, len(names))
	}
}

func TestSpotVMsEndAfterLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic, func(c *armsim.Config) { c.SpotLifetime = armsim.Distribution{Median: 2 * time.Hour} })
		u.mustBuy("spot", machine{size: "Standard_D4s_v5", zone: "1", spot: true})
		u.mustBuy("regular", machine{size: "Standard_D4s_v5", zone: "1"})
		time.Sleep(time.Hour)
		if n := len(u.Server.Machines()); n != 2 {
			t.Errorf("%d machines after an hour, want 2", n)
		}
		time.Sleep(2 * time.Hour)
		if ms := u.Server.Machines(); len(ms) != 1 || ms[0].Name != "regular" {
			t.Errorf("machines after three hours: %+v", ms)
		}
	})
}

func TestCompressedTimeRetryAfterInMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic, func(c *armsim.Config) { c.TimeScale = 60 })
		start := time.Now()
		u.mustBuy("a", machine{size: "Standard_D4s_v5", zone: "1"})
		if took := time.Since(start); took < 200*time.Millisecond || took > 4*time.Second {
			t.Errorf("creation took %s, want a sixtieth of the real time", took)
		}
	})
}

func TestPatchOfNetworkResourcesTakesTagsAlone(t *testing.T) {
	u := subscribe(t)
	if _, err := u.nic("a"); err != nil {
		t.Fatal(err)
	}
	group := "/subscriptions/" + u.SubscriptionID + "/resourceGroups/" + u.NodeResourceGroup + "/providers/Microsoft.Network/"
	network, _, _ := strings.Cut(u.SubnetID, "/subnets/")
	for _, path := range []string{group + "networkInterfaces/a", group + "loadBalancers/kubernetes", network} {
		status, _, body := u.raw("PATCH", path, "2025-05-01", nil, map[string]any{"properties": map[string]any{"enableIPForwarding": true}})
		if status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(body), "TagsObject") {
			t.Errorf("PATCH %s with properties: %d %v", path, status, body)
		}
		status, header, body := u.raw("PATCH", path, "2025-05-01", nil, map[string]any{"tags": map[string]string{"team": "web"}})
		if status != http.StatusOK || fmt.Sprint(body["tags"]) != "map[team:web]" || body["etag"] == nil {
			t.Errorf("PATCH %s with tags: %d %v %v", path, status, header, body)
		}
	}
}

func TestInterfacePutNamesItsOperation(t *testing.T) {
	u := subscribe(t)
	body := map[string]any{"location": u.Region, "properties": map[string]any{"ipConfigurations": []any{
		map[string]any{"name": "ipconfig1", "properties": map[string]any{"subnet": map[string]any{"id": u.SubnetID}}}}}}
	path := "/subscriptions/" + u.SubscriptionID + "/resourceGroups/" + u.NodeResourceGroup + "/providers/Microsoft.Network/networkInterfaces/a"
	for _, want := range []int{http.StatusCreated, http.StatusOK} {
		status, header, got := u.raw("PUT", path, "2025-05-01", nil, body)
		operation, _, _ := strings.Cut(strings.TrimPrefix(header.Get("Azure-AsyncOperation"), armtest.Endpoint), "?")
		if status != want || operation == "" {
			t.Fatalf("%d %v %v", status, header, got)
		}
		if _, _, op := u.raw("GET", operation, "2025-05-01", nil, nil); op["status"] != "Succeeded" {
			t.Errorf("operation %v", op)
		}
	}
}
