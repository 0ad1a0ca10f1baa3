package armsim_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// query asks Resource Graph and returns the lower-case IDs, all pages.
func (u *subscriber) query(kql string, top int32) ([]string, error) {
	u.t.Helper()
	c, err := armresourcegraph.NewClient(u.Credential, u.ClientOptions())
	if err != nil {
		u.t.Fatal(err)
	}
	var ids []string
	options := &armresourcegraph.QueryRequestOptions{ResultFormat: to.Ptr(armresourcegraph.ResultFormatObjectArray), Top: to.Ptr(top)}
	for {
		resp, err := c.Resources(u.t.Context(), armresourcegraph.QueryRequest{
			Query: to.Ptr(kql), Subscriptions: []*string{to.Ptr(u.SubscriptionID)}, Options: options,
		}, nil)
		if err != nil {
			return nil, err
		}
		for _, row := range resp.Data.([]any) {
			id := row.(map[string]any)["id"].(string)
			ids = append(ids, strings.ToLower(id[strings.LastIndexByte(id, '/')+1:]))
		}
		if resp.SkipToken == nil {
			return ids, nil
		}
		options.SkipToken = resp.SkipToken
	}
}

const ownVMs = `Resources
| where type == 'microsoft.compute/virtualmachines'
| where resourceGroup == 'mc_nap_nap_eastus'
| where tags has_cs 'karpenter.sh_nodepool'
| where not(tags has_cs 'karpenter.azure.com_aksmachine_nodeclaim')`

func TestResourceGraphFindsOwnVMsAndInterfaces(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5"})
	u.mustBuy("aks-b", machine{size: "Standard_D4s_v5"})
	u.mustBuy("foreign", machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) { vm.Tags = nil }})
	u.mustBuy("aksmachine", machine{size: "Standard_D4s_v5", change: func(vm *armcompute.VirtualMachine) {
		vm.Tags["karpenter.azure.com_aksmachine_nodeclaim"] = to.Ptr("x")
	}})
	if _, err := u.nic("alone"); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{
		ownVMs: {"aks-a", "aks-b"},
		"resources | where type =~ 'Microsoft.Network/networkInterfaces' | where isnull(properties.virtualMachine) " +
			"| project id": {"alone"},
		"Resources | where type == 'microsoft.compute/virtualmachines' and tags['karpenter.sh_nodepool'] == 'default' | " +
			"project id, tags": {"aks-a", "aks-b", "aksmachine"},
		"Resources | where type in~ ('Microsoft.Compute/virtualMachines') and (name startswith 'for' or name " +
			"endswith '-b')": {"aks-b", "foreign"},
		"Resources | where type == 'microsoft.compute/virtualmachines' | where name !in ('aks-a', 'aks-b') and " +
			"tolower(name) !contains 'FOR'": {"aksmachine"},
	} {
		got, err := u.query(query, 1000)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s\nfound %v (%v), want %v", query, got, err, want)
		}
		paged, err := u.query(query, 1)
		if err != nil || !slices.Equal(paged, want) {
			t.Errorf("page by page found %v (%v), want %v", paged, err, want)
		}
	}
}

func TestResourceGraphLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		if _, err := u.begin("aks-a", machine{size: "Standard_D4s_v5"}); err != nil {
			t.Fatal(err)
		}
		if ids, err := u.query(ownVMs, 1000); err != nil || len(ids) != 0 {
			t.Errorf("seen at once: %v, %v", ids, err)
		}
		time.Sleep(11 * time.Second)
		if ids, err := u.query(ownVMs, 1000); err != nil || len(ids) != 1 {
			t.Errorf("after the lag: %v, %v", ids, err)
		}
		if err := u.sell("aks-a"); err != nil {
			t.Fatal(err)
		}
		if ids, err := u.query(ownVMs, 1000); err != nil || len(ids) != 1 {
			t.Errorf("just deleted, it must still be shown: %v, %v", ids, err)
		}
		time.Sleep(11 * time.Second)
		if ids, err := u.query(ownVMs, 1000); err != nil || len(ids) != 0 {
			t.Errorf("after the lag: %v, %v", ids, err)
		}
	})
}

func TestResourceGraphRefusesInvalidQuery(t *testing.T) {
	u := subscribe(t)
	for query, want := range map[string]string{
		"":                                 "the query is empty",
		"Machines | where a == 1":          "must start with the table Resources",
		"Resources | summarize count()":    `the operator \"summarize\" is not supported`,
		"Resources | where type matches 1": `the comparison \"matches\" is not supported`,
		"Resources | where tags[1] == 'a'": "quoted name in brackets",
		"Resources | where type == 'a":     "does not end",
		"Resources | where type ==":        "ends where a value should be",
	} {
		_, err := u.query(query, 10)
		wantError(t, err, "BadRequest", want)
	}
}
