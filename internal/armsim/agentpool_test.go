package armsim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// raw sends a call that the SDK has no client for.
func (u *subscriber) raw(method, path, version string, header http.Header, body any) (int, http.Header, map[string]any) {
	u.t.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			u.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(u.t.Context(), method, armtest.Endpoint+path+"?api-version="+version, bytes.NewReader(sent))
	if err != nil {
		u.t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	token, _ := u.Server.Token("")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := u.HTTP.Do(r)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if text := read(u.t, resp); text != "" {
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			u.t.Fatalf("%s: %v", text, err)
		}
	}
	return resp.StatusCode, resp.Header, got
}

const previewVersion = "2026-04-02-preview"

func (u *subscriber) machinePath(name string) string {
	return u.Server.ClusterID() + "/agentPools/machines/machines/" + name
}

// aksMachine is a machine's body as the provider writes it.
func aksMachine(size, zone string) map[string]any {
	return map[string]any{
		"zones": []string{zone},
		"properties": map[string]any{
			"nodeImageVersion": "AKSUbuntu-2204gen2containerd-202606.09.0", "mode": "User", "priority": "Regular",
			"hardware":        map[string]any{"vmSize": size},
			"operatingSystem": map[string]any{"osType": "Linux", "osSKU": "Ubuntu2204", "osDiskSizeGB": 128},
			"kubernetes": map[string]any{"orchestratorVersion": "1.35.1", "maxPods": 110,
				"nodeLabels": map[string]string{"team": "blue"}, "nodeInitializationTaints": []string{"karpenter.sh/unregistered:NoExecute"}},
			"tags": map[string]string{"karpenter.azure.com_aksmachine_nodeclaim": "x"},
		},
	}
}

// shared is the body that the machines of a batch share: zones and tags are their own.
func shared(size string) map[string]any {
	m := aksMachine(size, "")
	delete(m, "zones")
	delete(m["properties"].(map[string]any), "tags")
	return m
}

// batchHeader asks for machines in zone 1.
func batchHeader(names ...string) http.Header {
	var entries []string
	for _, n := range names {
		entries = append(entries, fmt.Sprintf(`{"machineName":%q,"zones":["1"],"tags":{}}`, n))
	}
	return http.Header{"Batchputmachine": {`{"batchMachines":[` + strings.Join(entries, ",") + `]}`}}
}

func (u *subscriber) aksClients() (*armcontainerservice.MachinesClient, *armcontainerservice.AgentPoolsClient) {
	u.t.Helper()
	f, err := armcontainerservice.NewClientFactory(u.SubscriptionID, u.Credential, u.ClientOptions())
	if err != nil {
		u.t.Fatal(err)
	}
	return f.NewMachinesClient(), f.NewAgentPoolsClient()
}

func TestAgentPoolMachineLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := subscribe(t, armtest.Realistic)
		seen := &recorder{}
		u.Server.Observe(seen)
		machines, pools := u.aksClients()
		status, header, body := u.raw("PUT", u.machinePath("default-abcde"), previewVersion, nil, aksMachine("Standard_D4s_v5", "1"))
		if status != http.StatusCreated || header.Get("Azure-AsyncOperation") == "" {
			t.Fatalf("%d %v", status, body)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		got, err := machines.Get(t.Context(), u.ResourceGroup, u.ClusterName, "machines", "default-abcde", nil)
		if err != nil {
			t.Fatal(err)
		}
		if id := *got.Properties.ResourceID; !strings.Contains(id, "/virtualMachines/aks-machines-default-abcde-") ||
			!strings.HasSuffix(id, "-vm") {
			t.Errorf("resource ID %s", id)
		}
		h := seen.soFar()
		if len(h.booted) != 1 || h.booted[0].AKS == nil {
			t.Fatalf("booted %+v", h.booted)
		}
		if a := h.booted[0].AKS; a.Labels["team"] != "blue" || a.MaxPods != 110 || len(a.Taints) != 1 || a.Pool != "machines" {
			t.Errorf("Kubernetes settings %+v", a)
		}
		p, err := pools.BeginDeleteMachines(t.Context(), u.ResourceGroup, u.ClusterName, "machines",
			armcontainerservice.AgentPoolDeleteMachinesParameter{MachineNames: []*string{to.Ptr("default-abcde")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.PollUntilDone(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if !u.Server.Leaks().Empty() {
			t.Errorf("left behind: %+v", u.Server.Leaks())
		}
		_, err = pools.BeginDeleteMachines(t.Context(), u.ResourceGroup, u.ClusterName, "machines",
			armcontainerservice.AgentPoolDeleteMachinesParameter{MachineNames: []*string{to.Ptr("default-abcde")}}, nil)
		wantError(t, err, "InvalidParameter", "Cannot find any valid machines")
	})
}

func TestBatchPutCreatesAllMachines(t *testing.T) {
	u := subscribe(t)
	var entries []map[string]any
	for i := range 50 {
		entries = append(entries, map[string]any{
			"machineName": fmt.Sprintf("m-%02d", i), "zones": []string{fmt.Sprint(i%3 + 1)}, "tags": map[string]string{"n": fmt.Sprint(i)},
		})
	}
	header, err := json.Marshal(map[string]any{"batchMachines": entries})
	if err != nil {
		t.Fatal(err)
	}
	status, _, body := u.raw("PUT", u.machinePath("m-00"), previewVersion,
		http.Header{"Batchputmachine": {string(header)}}, shared("Standard_D4s_v5"))
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, body)
	}
	if n := len(u.Server.Leaks().Machines); n != 50 {
		t.Errorf("%d machines, want 50", n)
	}
	if _, _, got := u.raw("GET", u.machinePath("m-07"), previewVersion, nil, nil); fmt.Sprint(got["zones"], got["name"]) != "[2]m-07" ||
		got["properties"].(map[string]any)["tags"].(map[string]any)["n"] != "7" {
		t.Errorf("machine 7: %v", got)
	}
}

func TestBatchWithInvalidMachineIsRefusedNamingIt(t *testing.T) {
	u := subscribe(t)
	header := batchHeader("good", "Bad_Name")
	status, _, e := u.raw("PUT", u.machinePath("good"), previewVersion, header, shared("Standard_D4s_v5"))
	details, _ := e["details"].([]any)
	if status != 400 || e["code"] != "BatchMachineClientError" || len(details) != 1 || details[0].(map[string]any)["target"] != "Bad_Name" {
		t.Errorf("%d %v", status, e)
	}
	if !u.Server.Leaks().Empty() {
		t.Errorf("something was created: %+v", u.Server.Leaks())
	}
}

func TestBatchHeaderMalformedIsRefused(t *testing.T) {
	u := subscribe(t)
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf(`{"machineName":"m-%d"}`, i)
	}
	for header, want := range map[string]string{
		"m-0":                  "is no JSON",
		`{"batchMachines":[]}`: "names 0 machines; it must name 1 to 50",
		`{"batchMachines":[` + strings.Join(many, ",") + `]}`:             "names 51 machines; it must name 1 to 50",
		`{"batchMachines":[{"machineName":"m-0"},{"machineName":"M-0"}]}`: "names machine 'M-0' twice",
		`{"batchMachines":[{"machineName":"m-1"}]}`:                       "does not name machine 'm-0'",
	} {
		status, _, body := u.raw("PUT", u.machinePath("m-0"), previewVersion,
			http.Header{"Batchputmachine": {header}}, aksMachine("Standard_D4s_v5", "1"))
		if status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(body), want) {
			t.Errorf("%.60s: %d %v, want %s", header, status, body, want)
		}
	}
	if !u.Server.Leaks().Empty() {
		t.Errorf("something was created: %+v", u.Server.Leaks())
	}
}

func TestBatchOutOfAddressesKeepsMachinesAndResumes(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) { c.Cluster.Subnet = netip.MustParsePrefix("10.224.0.0/29") }) // three addresses are free
	header := batchHeader("a", "b", "c", "d")
	for range 2 { // what exists already stays as it is
		status, _, e := u.raw("PUT", u.machinePath("a"), previewVersion, header, shared("Standard_D4s_v5"))
		var framed struct {
			Details []struct{ Code, Target string }
		}
		if message, _ := e["message"].(string); status == http.StatusInternalServerError {
			if err := json.Unmarshal([]byte(message), &framed); err != nil {
				t.Fatalf("%s: %v", message, err)
			}
		}
		failed := framed.Details
		if e["code"] == "BatchMachineInternalServerError" && len(failed) == 1 && failed[0].Code == "SubnetIsFull" && failed[0].Target == "d" {
			continue
		}
		// Of the one machine that is left the error is its own.
		if e["code"] != "SubnetIsFull" {
			t.Errorf("%d %v", status, e)
		}
	}
	if n := len(u.Server.Leaks().Machines); n != 3 {
		t.Errorf("%d machines, want 3", n)
	}
}

func TestAgentPoolMachineWithoutQuotaFailsInStatus(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) { c.Quota = map[string]int64{"standardDSv5Family": 0} })
	status, header, _ := u.raw("PUT", u.machinePath("a"), previewVersion, nil, aksMachine("Standard_D4s_v5", "1"))
	if status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	var op map[string]any
	path, _, _ := strings.Cut(strings.TrimPrefix(header.Get("Azure-AsyncOperation"), armtest.Endpoint), "?")
	for op == nil || op["status"] == "InProgress" {
		_, _, op = u.raw("GET", path, previewVersion, nil, nil)
	}
	if e, _ := op["error"].(map[string]any); op["status"] != "Failed" || e["code"] != "QuotaExceeded" {
		t.Errorf("operation %v", op)
	}
	_, _, got := u.raw("GET", u.machinePath("a"), previewVersion, nil, nil)
	failure, _ := got["properties"].(map[string]any)["status"].(map[string]any)["provisioningError"].(map[string]any)
	details, _ := failure["details"].([]any)
	if failure["code"] != "QuotaExceeded" || len(details) != 1 || details[0].(map[string]any)["code"] != "OperationNotAllowed" {
		t.Errorf("provisioning error %v", failure)
	}
}

func TestAgentPoolRefusesUnsupportedSize(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) { c.Restrictions = []armsim.Restriction{{Size: "Standard_D8s_v5"}} })
	for size, want := range map[string]string{"Standard_X": "VMSizeNotSupported", "Standard_D8s_v5": "is not supported for subscription"} {
		status, _, body := u.raw("PUT", u.machinePath("a"), previewVersion, nil, aksMachine(size, "1"))
		if status != 400 || !strings.Contains(fmt.Sprint(body), want) {
			t.Errorf("%s: %d %v", size, status, body)
		}
	}
}

func TestAgentPoolMachineTagsNeedETag(t *testing.T) { synctest.Test(t, machinesTagsChange) }

func machinesTagsChange(t *testing.T) {
	u := subscribe(t)
	u.raw("PUT", u.machinePath("a"), previewVersion, nil, aksMachine("Standard_D4s_v5", "1"))
	synctest.Wait() // the end of its creation changes the ETag
	change := aksMachine("Standard_D4s_v5", "1")
	change["properties"].(map[string]any)["tags"] = map[string]string{"team": "red"}
	if status, _, body := u.raw("PUT", u.machinePath("a"), previewVersion, http.Header{"If-Match": {`W/"old"`}}, change); status != http.StatusPreconditionFailed {
		t.Errorf("with an old ETag: %d %v", status, body)
	}
	_, _, made := u.raw("GET", u.machinePath("a"), previewVersion, nil, nil)
	etag, _ := made["properties"].(map[string]any)["eTag"].(string)
	status, _, body := u.raw("PUT", u.machinePath("a"), previewVersion, http.Header{"If-Match": {etag}}, change)
	if tags := fmt.Sprint(body["properties"].(map[string]any)["tags"]); status != 200 || tags != "map[team:red]" {
		t.Errorf("%d, tags %s", status, tags)
	}
	if status, _, body := u.raw("PUT", u.machinePath("a"), previewVersion, nil, aksMachine("Standard_D8s_v5", "1")); status != http.StatusBadRequest {
		t.Errorf("with another size: %d %v", status, body)
	}
	if status, _, body := u.raw("PATCH", u.machinePath("a"), previewVersion, nil, change); status != http.StatusMethodNotAllowed {
		t.Errorf("PATCH: %d %v", status, body)
	}
}

func TestClusterAndMaintenanceWindowsAreServed(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) {
		c.Cluster.Properties = map[string]any{"nodeProvisioningProfile": map[string]any{"mode": "Auto"}}
	})
	f, err := armcontainerservice.NewClientFactory(u.SubscriptionID, u.Credential, u.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := f.NewManagedClustersClient().Get(t.Context(), u.ResourceGroup, u.ClusterName, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *cluster.Properties.NodeResourceGroup != u.NodeResourceGroup || *cluster.Properties.NodeProvisioningProfile.Mode != armcontainerservice.NodeProvisioningModeAuto {
		t.Errorf("node group %s, mode %s", *cluster.Properties.NodeResourceGroup, *cluster.Properties.NodeProvisioningProfile.Mode)
	}
	windows := f.NewMaintenanceConfigurationsClient()
	_, err = windows.Get(t.Context(), u.ResourceGroup, u.ClusterName, "aksManagedNodeOSUpgradeSchedule", nil)
	wantStatus(t, err, http.StatusNotFound)
	if _, err := windows.CreateOrUpdate(t.Context(), u.ResourceGroup, u.ClusterName, "aksManagedNodeOSUpgradeSchedule", armcontainerservice.MaintenanceConfiguration{
		Properties: &armcontainerservice.MaintenanceConfigurationProperties{MaintenanceWindow: &armcontainerservice.MaintenanceWindow{
			DurationHours: to.Ptr[int32](4), StartTime: to.Ptr("01:00"), Schedule: &armcontainerservice.Schedule{Daily: &armcontainerservice.DailySchedule{IntervalDays: to.Ptr[int32](1)}}}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	got, err := windows.Get(t.Context(), u.ResourceGroup, u.ClusterName, "aksManagedNodeOSUpgradeSchedule", nil)
	if err != nil || *got.Properties.MaintenanceWindow.DurationHours != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFixedMachinesNeedNoQuotaAndAreNotLeaks(t *testing.T) {
	u := subscribe(t)
	seen := &recorder{}
	u.Server.Observe(seen)
	for range 3 {
		if _, err := u.Server.AddAgentPoolMachine(armsim.PoolMachine{Size: "Standard_D8s_v5", CustomData: []byte("join")}); err != nil {
			t.Fatal(err)
		}
	}
	machines, _ := u.aksClients()
	page, err := machines.NewListPager(u.ResourceGroup, u.ClusterName, "system", nil).NextPage(t.Context())
	if err != nil || len(page.Value) != 3 {
		t.Errorf("%d machines, %v", len(page.Value), err)
	}
	if used, _ := u.usage("cores"); used != 0 || !u.Server.Leaks().Empty() {
		t.Errorf("%d cores, leaks %+v", used, u.Server.Leaks())
	}
	h := seen.soFar()
	if len(h.booted) != 3 || string(h.booted[0].CustomData) != "join" || h.booted[2].Name != "aks-system-10000001-vmss000002" {
		t.Errorf("booted %+v", h.booted)
	}
	if _, err := u.Server.AddAgentPoolMachine(armsim.PoolMachine{Pool: "other"}); err == nil {
		t.Error("a pool that does not exist took a machine")
	}
}
