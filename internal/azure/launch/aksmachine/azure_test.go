package aksmachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// azure answers every request alike, PUT with another status where that is set, and notes what
// was asked and sent.
type azure struct {
	status int
	put    int
	body   string
	asked  []string
	sent   string
	header http.Header
}

func (a *azure) Do(r *http.Request) (*http.Response, error) {
	a.asked = append(a.asked, r.Method+" "+r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	a.header = r.Header
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.sent = string(text)
	}
	status := a.status
	if r.Method == http.MethodPut && a.put != 0 {
		status = a.put
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
	}, nil
}

func (a *azure) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "x", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// launcher is one for pool p of cluster c on this Azure.
func (a *azure) launcher(t *testing.T) *Launcher {
	t.Helper()
	client, err := NewMachineClient("/pools/p", a, &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: a, Retry: policy.RetryOptions{MaxRetries: -1}}, DisableRPRegistration: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(Clients{Machines: client}, &config.Config{ClusterName: "c", MachinesPool: "p"})
}

// machineText is a machine as AKS writes it.
func machineText(name, tags, properties string) string {
	return `{"name": "` + name + `", "properties": {"tags": {` + tags + `}, "kubernetes": {` + properties + `}}}`
}

const (
	clusterTag = `"karpenter.azure.com_cluster": "c"`
	claimTag   = `"karpenter.azure.com_aksmachine_nodeclaim": "general-a"`
	// napsOwn is what nap alone puts on machines.
	napsOwn = `"nodeInitializationTaints": ["karpenter.sh/unregistered:NoExecute"], ` +
		`"nodeLabels": {"karpenter.azure.com/aksnodeclass": "default"}`
)

// By ErrForeign a provider id is looked for among plain machines.
func TestMachineIsFoundByProviderIDOrForeign(t *testing.T) {
	const ofPool, ofAnother = "azure:///x/virtualMachines/aks-p-general-a-12345678-vm", "azure:///x/virtualMachines/aks-general-a"
	for name, c := range map[string]struct {
		id, tags string
		asked    int
		foreign  bool
	}{
		"ours":               {ofPool, clusterTag + "," + claimTag, 1, false},
		"not of the pool":    {ofAnother, clusterTag + "," + claimTag, 0, true},
		"of another cluster": {ofPool, claimTag, 1, true},
		"of nobody":          {ofPool, "", 1, true},
		"of nobody any more": {ofPool, clusterTag, 1, true},
	} {
		a := &azure{status: http.StatusOK, body: machineText("general-a", c.tags, "")}
		m, err := a.launcher(t).Find(t.Context(), c.id)
		if errors.Is(err, launch.ErrForeign) != c.foreign || len(a.asked) != c.asked || (err == nil) != (m.Claim == "general-a") {
			t.Errorf("%s: %+v, %v, asked %v", name, m, err, a.asked)
		}
	}
}

// A machine that runs is not a failed launch, whatever failed later.
func TestWhyAKSGaveAMachineUp(t *testing.T) {
	for status, want := range map[string]string{
		`null`:                   "ProvisioningFailed",
		`{}`:                     "ProvisioningFailed",
		`{"vmState": "Stopped"}`: "ProvisioningFailed",
		`{"vmState": "Running"}`: "",
		`{"provisioningError": {"code": "AllocationFailed"}}`:                                   "AllocationFailed",
		`{"vmState": "Stopped", "provisioningError": {"code": "AllocationFailed"}}`:             "AllocationFailed",
		`{"vmState": "Running", "provisioningError": {"code": "OperationPreempted"}}`:           "",
		`{"vmState": "Running", "provisioningError": {"code": "VMExtensionProvisioningError"}}`: "VMExtensionProvisioningError",
		`{"vmState": "Running", "provisioningError": {"code": "OSProvisioningTimedOut"}}`:       "OSProvisioningTimedOut",
	} {
		a := &azure{status: http.StatusOK, body: `{"properties": {"status": ` + status + `}}`}
		failure, err := a.launcher(t).Failure(t.Context(), "general-a")
		if err != nil || (failure == nil) != (want == "") || failure != nil && failure.Code != want {
			t.Errorf("%s: %v, %v, want %q", status, failure, err, want)
		}
	}
}

// Orphans lack a tag of nap's and bear both marks that nap alone makes.
func TestOrphansBearNapsMarks(t *testing.T) {
	taint, label, _ := strings.Cut(napsOwn, ", ")
	a := &azure{status: http.StatusOK, body: `{"value": [` + strings.Join([]string{
		machineText("a", clusterTag+","+claimTag, napsOwn),
		machineText("b", claimTag, napsOwn),
		machineText("c", clusterTag, napsOwn),
		machineText("d", `"karpenter.azure.com_cluster": "another"`, napsOwn),
		machineText("e", "", taint),
		machineText("f", "", label),
	}, ",") + `]}`}
	orphans, err := a.launcher(t).Orphans(t.Context())
	if want := []Orphan{{Name: "b", Claim: "general-a"}, {Name: "c"}}; err != nil || !slices.Equal(orphans, want) {
		t.Errorf("got %+v, %v, want %+v", orphans, err, want)
	}
}

// A machine without any tags gets them; one that another client has mended is left alone.
func TestAdoptedMachineIsWrittenOnce(t *testing.T) {
	a := &azure{status: http.StatusOK, body: `{"properties": {"kubernetes": {` + napsOwn + `}}}`}
	if err := a.launcher(t).Adopt(t.Context(), Orphan{Name: "a"}, "general-a"); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{clusterTag, claimTag} {
		if !strings.Contains(a.sent, strings.ReplaceAll(tag, ": ", ":")) {
			t.Errorf("sent %s, want it with %s", a.sent, tag)
		}
	}
	a = &azure{status: http.StatusOK, body: machineText("a", clusterTag+","+claimTag, napsOwn)}
	if err := a.launcher(t).Adopt(t.Context(), Orphan{Name: "a"}, "general-b"); err != nil || !slices.Equal(a.asked, []string{"GET a"}) {
		t.Errorf("%v, asked %v, want no change of what has its tags", err, a.asked)
	}
}

// A pool that is there stays as it is.
func TestPoolIsMadeOnlyWhereThereIsNone(t *testing.T) {
	a := &azure{status: http.StatusCreated, body: `{}`}
	if err := a.launcher(t).clients.Machines.MakePool(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.header.Get("If-None-Match") != "*" || !slices.Equal(a.asked, []string{"PUT p"}) || a.sent != `{"properties":{"mode":"Machines"}}` {
		t.Errorf("asked %v with %v and %s", a.asked, a.header, a.sent)
	}
}

// After a refusal a claim has waited already: it joins others for a quarter of the time.
func TestSecondChoicesAreBatchedForAQuarterOfTheTime(t *testing.T) {
	batching := config.Batching{Idle: time.Second, Max: 8 * time.Second, Size: 50}
	l := New(Clients{}, &config.Config{ProvisionMode: config.ModeAKSMachinesBatched, Batching: batching})
	if want := Batching(batching); l.batch.settings != want {
		t.Errorf("first choices: %+v, want %+v", l.batch.settings, want)
	}
	if want := (Batching{Idle: time.Second / 4, Max: 2 * time.Second, Size: 50}); l.again.settings != want {
		t.Errorf("second choices: %+v, want %+v", l.again.settings, want)
	}
}

// AKS keeps a pool's mode on the machine, not in a label.
func TestModeOfMachineIsThatOfItsLabel(t *testing.T) {
	l := New(Clients{}, &config.Config{ClusterName: "c"})
	for label, want := range map[string]string{"system": "System", "user": "User", "": "User"} {
		m, err := l.body(launch.NodeSpec{
			Claim: "general-a", SKU: &instancetype.SKU{}, Class: &nodeclass.NodeClass{ImageFamily: "Ubuntu", KubernetesVersion: "1.35.1"},
			Labels: map[string]string{instancetype.LabelAKSMode: label},
		})
		if err != nil || m.Properties.Mode != want {
			t.Errorf("%q: mode %q, %v, want %s", label, m.Properties.Mode, err, want)
		}
	}
}

// What nap does not know of a machine is written back as it was read.
func TestRetaggedMachineKeepsEverythingElse(t *testing.T) {
	read := []byte(`{"id": "x", "properties": {"number": 12345678901234567, "tags": {"a": "1"}, "eTag": "y"}}`)
	body, err := retagged(read, map[string]string{"b": "2"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(body)
	if want := `{"properties":{"number":12345678901234567,"tags":{"b":"2"}}}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	if _, err := retagged([]byte(`{}`), nil); err == nil {
		t.Error("a machine without properties was taken for one")
	}
}

// AKS manages the GPUs of NVIDIA alone.
func TestOnlyGPUsOfNVIDIAAreManaged(t *testing.T) {
	for name, managed := range map[string]bool{"Standard_NC24ads_A100_v4": true, "Standard_NV32as_v4": false} {
		size, err := instancetype.ParseSize(name)
		if err != nil {
			t.Fatal(err)
		}
		sku := &instancetype.SKU{Name: name, Size: size, GPUs: 1}
		if p := gpus(launch.NodeSpec{SKU: sku, Class: &nodeclass.NodeClass{NVIDIAManagement: "Managed"}}); p.Driver != "Install" || (p.NVIDIA != nil) != managed {
			t.Errorf("%s: %+v, want it managed: %t", name, p, managed)
		}
	}
}

// A machine that is there is never changed by asking for it once more; of a batch AKS is told
// each machine.
func TestMachineIsMadeOnlyWhereThereIsNone(t *testing.T) {
	a := &azure{status: http.StatusOK, body: `{}`}
	c := a.launcher(t).clients.Machines
	if err := c.put(t.Context(), "general-a", machine{}, nil); err != nil {
		t.Fatal(err)
	}
	if a.header.Get("If-None-Match") != "*" || a.header.Get("BatchPutMachine") != "" || a.header.Get("AllowSpotVMSystemNode") != "true" {
		t.Errorf("alone: sent with %v", a.header)
	}
	if err := c.put(t.Context(), "general-a", machine{}, []batchEntry{{MachineName: "general-a", Zones: []string{"1"}}}); err != nil {
		t.Fatal(err)
	}
	want := `{"batchMachines":[{"machineName":"general-a","zones":["1"],"tags":null}]}`
	if a.header.Get("If-None-Match") != "" || a.header.Get("BatchPutMachine") != want || a.header.Get("AllowSpotVMSystemNode") != "true" {
		t.Errorf("in a batch: sent with %v", a.header)
	}
}

// Tags are written unless another client was faster; then the machine is read again, some times.
func TestTagsAreWrittenOverWhatWasRead(t *testing.T) {
	tagged := func(machine) map[string]string { return map[string]string{"a": "1"} }
	for name, c := range map[string]struct {
		etag, match string
		put, calls  int
	}{
		"with a version":       {`"eTag": "x",`, "x", http.StatusOK, 2},
		"without one":          {"", "", http.StatusOK, 2},
		"changed all the time": {`"eTag": "x",`, "x", http.StatusPreconditionFailed, 2 * changeAttempts},
		"refused":              {`"eTag": "x",`, "x", http.StatusConflict, 2},
	} {
		a := &azure{status: http.StatusOK, put: c.put, body: `{"properties": {` + c.etag + `"tags": {}}}`}
		err := a.launcher(t).clients.Machines.changeTags(t.Context(), "general-a", tagged)
		if (err == nil) != (c.put == http.StatusOK) || launch.Status(err) != 0 && launch.Status(err) != c.put || len(a.asked) != c.calls ||
			a.header.Get("If-Match") != c.match || a.header.Get("AllowSpotVMSystemNode") != "true" {
			t.Errorf("%s: %v, asked %v, the last time with %v", name, err, a.asked, a.header)
		}
	}
}

// Of a batch that failed as a whole AKS may have made some machines; one that AKS has refused
// by itself, or that goes, is none of them.
func TestMachineOfFailedBatchIsTakenWhereItWasMade(t *testing.T) {
	failed, own := errors.New("the batch failed"), unavailable.NewFailure("AllocationFailed", "", nil)
	for name, c := range map[string]struct {
		batched bool
		err     error
		status  int
		state   string
		made    bool
	}{
		"it was made":            {true, failed, http.StatusOK, "Creating", true},
		"it goes":                {true, failed, http.StatusOK, "Deleting", false},
		"it is not there":        {true, failed, http.StatusNotFound, "", false},
		"it was refused itself":  {true, own, http.StatusOK, "Creating", false},
		"it was asked for alone": {false, failed, http.StatusOK, "Creating", false},
	} {
		a := &azure{status: c.status, body: `{"name": "general-a", "properties": {"provisioningState": "` + c.state + `", "tags": {` + clusterTag + "," + claimTag + `}}}`}
		l := a.launcher(t)
		if c.batched {
			l.batch = newBatcher(Batching{}, l.clients.Machines.put)
		}
		if m, made := l.madeAnyway(t.Context(), "general-a", c.err); made != c.made || made && m.Claim != "general-a" {
			t.Errorf("%s: %+v, %t, want it taken: %t", name, m, made, c.made)
		}
	}
}

// What a machine is, is read from AKS alone, so that every process sees the same.
func TestMachineIsWhatAKSSaysOfIt(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const id = "/subscriptions/s/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/aks-p-general-a-12345678-vm"
	provider := "azure://" + strings.Replace(id, "/G/", "/g/", 1)
	for text, want := range map[string]launch.Machine{
		`"zones": ["2"], "properties": {"priority": "spot", "provisioningState": "Succeeded", "hardware": {"vmSize": "Standard_D4s_v5"}, "resourceId": "` + id + `",
			"status": {"creationTimestamp": "2026-01-02T03:04:05Z", "driftAction": "Recreate"}, `: {
			Zone: "2", CapacityType: model.Spot, State: launch.Succeeded, Size: "Standard_D4s_v5", ProviderID: provider, Created: created, Drifted: true,
		},
		`"properties": {"priority": "Regular", "resourceId": "` + id + `", "status": {"driftAction": "Synced"}, `: {
			CapacityType: model.OnDemand, State: launch.Creating, ProviderID: provider,
		},
		`"properties": {"resourceId": "` + id + `", `: {CapacityType: model.OnDemand, State: launch.Creating, ProviderID: provider},
	} {
		a := &azure{status: http.StatusOK, body: `{"name": "general-a", ` + text + `"tags": {` + clusterTag + "," + claimTag + `, "karpenter.sh_nodepool": "general"}}}`}
		got, err := a.launcher(t).Get(t.Context(), "general-a")
		want.Claim, want.Pool, want.AKS, want.Tags, want.ImageID = "general-a", "general", true, got.Tags, got.ImageID
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

// Azure may answer with names of tags in another case: nap's own are read as nap's, so that
// the machine is listed, and its tags are not written again and again.
func TestTagsAreReadInAnyCase(t *testing.T) {
	var p described
	if err := json.Unmarshal([]byte(`{"tags": {"Karpenter.azure.com_Cluster": "c", "Team": "web"}}`), &p); err != nil {
		t.Fatal(err)
	}
	if want := (tags{launch.TagCluster: "c", "Team": "web"}); !maps.Equal(p.Tags, want) {
		t.Errorf("got %v, want %v", p.Tags, want)
	}
}
