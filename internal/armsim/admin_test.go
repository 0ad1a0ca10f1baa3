package armsim_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure"
)

// admin calls the admin API.
func admin(t *testing.T, env *armtest.Env, method, path, body string, into any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, armtest.Endpoint+"/admin/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+armtest.AdminToken)
	resp, err := env.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestFaultsAreAddedListedAndRemovedOverHTTP(t *testing.T) {
	env := armtest.New(t)
	var added armsim.Fault
	if status := admin(t, env, "POST", "faults", `{"kind":"throttle","rate":0.5,"duration":"1h","retryAfter":"3s"}`,
		&added); status != http.StatusCreated || added.ID == "" {
		t.Fatalf("%d %+v", status, added)
	}
	var listed []armsim.Fault
	admin(t, env, "GET", "faults", "", &listed)
	if diff := cmp.Diff([]armsim.Fault{added}, listed); diff != "" {
		t.Errorf("(-added +listed):\n%s", diff)
	}
	var answer map[string]any
	if status := admin(t, env, "DELETE", "faults/"+added.ID, "", &answer); status != http.StatusOK {
		t.Errorf("removal: %d %v", status, answer)
	}
	if status := admin(t, env, "DELETE", "faults/"+added.ID, "", &answer); status != http.StatusNotFound {
		t.Errorf("second removal: %d %v", status, answer)
	}
	if n := len(env.Server.Faults()); n != 0 {
		t.Errorf("%d faults in force", n)
	}
}

func TestAdminAPIRefusesUnknownRequests(t *testing.T) {
	env := armtest.New(t)
	for body, want := range map[string]string{
		`{"kind":"throttle","colour":"red"}`:    `unknown field "colour"`,
		`{"kind":"throttle","duration":"soon"}`: `"soon" is not a duration`,
		`{"kind":"fire"}`:                       `"fire" is unknown; it is one of capacity`,
		`nonsense`:                              "invalid character",
	} {
		var answer struct{ Error string }
		if status := admin(t, env, "POST", "faults", body, &answer); status != http.StatusBadRequest || !strings.Contains(answer.Error, want) {
			t.Errorf("%s: %d %s, want %q", body, status, answer.Error, want)
		}
	}
	resp, err := env.HTTP.Get(armtest.Endpoint + "/admin/faults")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d", resp.StatusCode)
	}
}

func TestAuditLogRecordsVMLifecycle(t *testing.T) {
	u := subscribe(t)
	u.mustBuy("aks-a", machine{size: "Standard_D4s_v5", zone: "1"})
	if err := u.sell("aks-a"); err != nil {
		t.Fatal(err)
	}
	var entries []armsim.AuditEntry
	admin(t, u.Env, "GET", "audit", "", &entries)
	var story []string
	for _, e := range entries {
		if e.Kind == armsim.AuditLifecycle && e.Action != "vm.booted" && e.Action != "vm.provisioned" {
			story = append(story, e.Action)
		}
	}
	want := []string{"nic.created", "vm.accepted", "disk.created", "vm.succeeded", "vm.deleting", "nic.deleted", "disk.deleted", "vm.deleted"}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, e := range entries {
		if e.Action == "vm.accepted" && e.Tags["karpenter.sh_nodepool"] != "default" {
			t.Errorf("the purchase does not say what it was for: %+v", e)
		}
	}
	var later []armsim.AuditEntry
	admin(t, u.Env, "GET", "audit?after=3", "", &later)
	if diff := cmp.Diff(entries[3:], later); diff != "" {
		t.Errorf("after 3 (-want +got):\n%s", diff)
	}
	var inventory armsim.Inventory
	admin(t, u.Env, "GET", "leaks", "", &inventory)
	var stats map[string]int64
	admin(t, u.Env, "GET", "stats", "", &stats)
	if !inventory.Empty() || stats["vm.deleted"] != 1 || stats["calls Microsoft.Compute/virtualMachines/write"] != 1 {
		t.Errorf("inventory %+v, stats %v", inventory, stats)
	}
}

func TestAdminAPIUpgradesClusterAndSetsWindows(t *testing.T) {
	u := subscribe(t)
	clusters, err1 := armcontainerservice.NewManagedClustersClient(u.SubscriptionID, u.Credential, u.ClientOptions())
	windows, err2 := armcontainerservice.NewMaintenanceConfigurationsClient(u.SubscriptionID, u.Credential, u.ClientOptions())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	cfg := u.Server.Config().Cluster
	var done struct{}
	if status := admin(t, u.Env, "POST", "kubernetes", `{"version":"1.99.0"}`, &done); status != http.StatusOK {
		t.Errorf("upgrade: %d", status)
	}
	cluster, err := clusters.Get(t.Context(), cfg.ResourceGroup, cfg.Name, nil)
	if err != nil || *cluster.Properties.CurrentKubernetesVersion != "1.99.0" {
		t.Errorf("the cluster after the upgrade: %v, %v", cluster.Properties, err)
	}
	const name = "aksManagedAutoUpgradeSchedule"
	for body, wantOpen := range map[string]bool{`{"name":"` + name + `","open":true}`: true, `{"name":"` + name + `","open":false}`: false} {
		if status := admin(t, u.Env, "POST", "windows", body, &done); status != http.StatusOK {
			t.Errorf("%s: %d", body, status)
		}
		c, err := windows.Get(t.Context(), cfg.ResourceGroup, cfg.Name, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		window, err := azure.WindowOf(c.Properties)
		if err != nil {
			t.Fatal(err)
		}
		if open, _ := window.Open(time.Now()); open != wantOpen {
			t.Errorf("%s: the window %s is open: %v", body, window, open)
		}
	}
	if status := admin(t, u.Env, "POST", "windows", `{"name":"`+name+`"}`, &done); status != http.StatusOK {
		t.Errorf("remove: %d", status)
	}
	var refusal *azcore.ResponseError
	if _, err := windows.Get(t.Context(), cfg.ResourceGroup, cfg.Name, name, nil); !errors.As(err, &refusal) || refusal.StatusCode != http.StatusNotFound {
		t.Errorf("a window that was removed: %v", err)
	}
	for route, bad := range map[string][2]string{
		"windows":    {`{"name":"mine","open":true}`, `name "mine": allowed are aksManagedNodeOSUpgradeSchedule, aksManagedAutoUpgradeSchedule`},
		"images":     {`{"version":"latest"}`, `version "latest": give one as 202607.01.0`},
		"kubernetes": {`{}`, "version is missing"},
	} {
		var answer struct{ Error string }
		if status := admin(t, u.Env, "POST", route, bad[0], &answer); status != http.StatusBadRequest || !strings.Contains(answer.Error, bad[1]) {
			t.Errorf("%s %s: %d %q", route, bad[0], status, answer.Error)
		}
	}
}
