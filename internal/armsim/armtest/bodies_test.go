package armtest

import (
	"net/http"
	"strings"
	"testing"
)

func TestEveryRouteHasPublishedBodies(t *testing.T) {
	served := map[string]bool{}
	for _, r := range New(t).Server.Routes() {
		if r.Provider == "" {
			continue // no resource manager: sign-in and prices
		}
		row := r.Method + " " + r.Path
		served[row] = true
		if _, known := bodyTypes()[row]; !known {
			t.Errorf("%s has no published types for its bodies", row)
		}
	}
	if len(served) < 50 {
		t.Errorf("%d routes were looked at", len(served))
	}
}

func TestBodyJudgeFindsWhatIsNotPublished(t *testing.T) {
	const vm, machine = "PUT " + virtualMachine, "PUT " + pools + "/{}/machines/{}"
	for name, c := range map[string]struct {
		typ        bodyType
		body, want string
	}{
		"a field of the SDK's model":  {bodyTypes()[vm].request, `{"location": "eastus", "properties": {"priority": "Spot"}}`, ""},
		"a field that it lacks":       {bodyTypes()[vm].request, `{"location": "eastus", "bootstrap": "sh"}`, ".bootstrap is not published"},
		"one further down":            {bodyTypes()[vm].answer, `{"properties": {"osProfile": {"user": "a"}}}`, ".properties.osProfile.user is not published"},
		"one in a list":               {bodyTypes()[vm].answer, `{"resources": [{"etag": "a"}]}`, ".resources[].etag is not published"},
		"another type":                {bodyTypes()[vm].answer, `{"zones": "1"}`, "is no *armcompute.VirtualMachine"},
		"an extension's ETag":         {bodyTypes()["PUT "+virtualMachine+"/extensions/{}"].answer, `{"etag": "a"}`, ".etag is not published"},
		"no body":                     {bodyTypes()[vm].answer, ``, "has no body"},
		"a machine":                   {bodyTypes()[machine].request, `{"zones": ["1"], "properties": {"mode": "User", "tags": {"a": "b"}}}`, ""},
		"a machine's unknown field":   {bodyTypes()[machine].request, `{"properties": {"hardware": {"size": "D4"}}}`, ".properties.hardware.size is not published"},
		"a machine's wrong type":      {bodyTypes()[machine].request, `{"properties": {"kubernetes": {"maxPods": "many"}}}`, "which is no integer"},
		"a machine's wrong word":      {bodyTypes()[machine].request, `{"properties": {"mode": "Machines"}}`, "which is no string [System User]"},
		"what AKS alone writes, sent": {bodyTypes()[machine].request, `{"properties": {"eTag": "a"}}`, ".properties.eTag is read-only"},
		"and answered":                {bodyTypes()[machine].answer, `{"properties": {"eTag": "a", "status": {"driftAction": "Synced"}}}`, ""},
		"a part that the SDK has":     {bodyTypes()[machine].request, `{"properties": {"kubernetes": {"kubeletConfig": {"speed": 1}}}}`, ".speed is not published"},
		"an error of ARM":             {errorBody, `{"error": {"code": "A", "message": "b", "details": [{"code": "c"}]}}`, ""},
		"an error with more":          {errorBody, `{"error": {"code": "A", "reason": "b"}}`, `unknown field "reason"`},
		"an error of AKS":             {flatBody, `{"code": "A", "message": "b", "details": null, "subcode": ""}`, ""},
	} {
		got := strings.Join(c.typ.check([]byte(c.body)), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestBodyJudgeReadsTheHeaderOfBatches(t *testing.T) {
	const ultra = `{"zones": ["1"], "properties": {"hardware": {"ultraSsdEnabled": true}}}`
	const entry = `{"machineName": "a", "zones": ["1"], "tags": {}}`
	for name, c := range map[string]struct{ header, body, want string }{
		"no batch":               {``, `{"zones": ["1"], "properties": {"tags": {"a": "b"}}}`, ""},
		"a batch":                {`{"batchMachines": [` + entry + `]}`, `{"properties": {}}`, ""},
		"with ultra disks":       {`{"batchMachines": [` + entry + `]}`, ultra, ""},
		"an entry without zones": {`{"batchMachines": [{"machineName": "a", "tags": {}}]}`, `{}`, "lacks machineName, zones or tags"},
		"an entry with more":     {`{"batchMachines": [{"machineName": "a", "size": "D4"}]}`, `{}`, `unknown field "size"`},
		"zones for all":          {`{"batchMachines": [` + entry + `]}`, `{"zones": ["1"]}`, "zones without ultra disks"},
		"tags for all":           {`{"batchMachines": [` + entry + `]}`, `{"properties": {"tags": {}}}`, "has tags"},
	} {
		header := http.Header{}
		if c.header != "" {
			header.Set("BatchPutMachine", c.header)
		}
		got := strings.Join(checkMachinePut(header, []byte(c.body)), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBodyJudgeWatchesTheTransport: a request that goes through an Env is judged.
func TestBodyJudgeWatchesTheTransport(t *testing.T) {
	env := New(t)
	judge := newBodyJudge(env.Server)
	path := env.Server.ClusterID() + "/agentPools/machines/machines/a"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, Endpoint+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	judge.judge(request, []byte(`{"properties": {"color": "red"}}`), http.StatusCreated, http.Header{}, []byte(`{}`))
	judge.judge(request, []byte(`{"properties": {"size": "x"}}`), http.StatusBadRequest, http.Header{}, []byte(`{"code": "A", "message": "b"}`))
	if got := judge.found(); len(got) != 1 || !strings.Contains(got[0], ".properties.color is not published") {
		t.Errorf("found %q, want what was sent and accepted", got)
	}
}
