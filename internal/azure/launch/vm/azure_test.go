package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/bootstrap"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// azure answers every request, by its method and the end of its path in lower case, and
// notes what was asked. The status 0 is no answer.
type azure struct {
	answer func(request string) (status int, body string)
	asked  []string
	sent   map[string]string // by request
	query  string            // the last one's
}

func (a *azure) Do(r *http.Request) (*http.Response, error) {
	path := strings.Split(strings.ToLower(r.URL.Path), "/")
	request := r.Method + " " + path[len(path)-1]
	a.asked, a.query = append(a.asked, request), r.URL.RawQuery
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.sent[request] = string(text)
	}
	status, body := a.answer(request)
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if r.Method == http.MethodPut || status == http.StatusAccepted {
		header.Set("Azure-AsyncOperation", "https://management.azure.com/operations/put")
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: header,
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func (a *azure) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "x", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// launcher is one on this Azure.
func (a *azure) launcher(t *testing.T) *Launcher {
	t.Helper()
	a.sent = map[string]string{}
	options := &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{Transport: a, Retry: policy.RetryOptions{MaxRetries: -1}}, DisableRPRegistration: true,
	}
	compute, err := armcompute.NewClientFactory("s", a, options)
	if err != nil {
		t.Fatal(err)
	}
	nics, err := armnetwork.NewInterfacesClient("s", a, options)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := NewLists("s", "g", a, options)
	if err != nil {
		t.Fatal(err)
	}
	clients := Clients{Lists: lists, Machines: compute.NewVirtualMachinesClient(), Extensions: compute.NewVirtualMachineExtensionsClient(), NICs: nics}
	return New(clients, &config.Config{NodeResourceGroup: "g", ClusterName: "c"}, nil, launch.NewBoots())
}

// An operation has ended when Azure says so, or does not know it any more. A request too
// many, a fault of Azure's and no answer say nothing of it.
func TestOperationEndsWhenAzureSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		status        int
		body          string
		ended, failed bool
	}{
		"it runs":            {http.StatusOK, `{"status": "InProgress"}`, false, false},
		"it has succeeded":   {http.StatusOK, `{"status": "Succeeded"}`, true, false},
		"it has failed":      {http.StatusOK, `{"status": "Failed", "error": {"code": "Conflict"}}`, true, true},
		"a bad request":      {http.StatusBadRequest, `{}`, true, true},
		"not known":          {http.StatusNotFound, `{}`, true, true},
		"a request too many": {http.StatusTooManyRequests, `{}`, false, true},
		"a fault of Azure's": {http.StatusInternalServerError, `{}`, false, true},
		"no answer":          {0, "", false, true},
	} {
		a := &azure{answer: func(request string) (int, string) {
			switch request {
			case "PUT cse":
				return http.StatusCreated, `{"properties": {"provisioningState": "Creating"}}`
			case "GET put":
				return c.status, c.body
			}
			return http.StatusOK, `{"name": "cse"}`
		}}
		extensions := a.launcher(t).clients.Extensions
		poller, err := extensions.BeginCreateOrUpdate(t.Context(), "g", "m", "cse", armcompute.VirtualMachineExtension{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ended, err := pollOnce(t.Context(), poller); ended != c.ended || (err != nil) != c.failed {
			t.Errorf("%s: ended %t, %v; want %t, an error %t", name, ended, err, c.ended, c.failed)
		}
	}
}

// always answers everything alike.
func always(status int, body string) func(string) (int, string) {
	return func(string) (int, string) { return status, body }
}

// What the extension itself says decides where its operation is not known: it is looked at
// until it has ended.
func TestExtensionIsLookedAtUntilItHasEnded(t *testing.T) {
	for body, c := range map[string]struct {
		status   int
		followed bool
		text     string
	}{
		`{"name": "cse"}`: {http.StatusOK, true, ""},
		`{"name": "cse", "properties": {"provisioningState": "Creating"}}`:  {http.StatusOK, true, ""},
		`{"name": "cse", "properties": {"provisioningState": "Succeeded"}}`: {http.StatusOK, false, ""},
		`{"name": "cse", "properties": {"provisioningState": "Failed"}}`: {http.StatusOK, false,
			"extension cse failed, and Azure says no more than that"},
		`{"error": {"code": "ResourceNotFound"}}`: {http.StatusNotFound, false, ""},
	} {
		v := (&azure{answer: always(c.status, body)}).launcher(t)
		f, err := v.BootFailure(t.Context(), launch.Machine{Claim: "general-a"})
		if err != nil || f.Text != c.text {
			t.Errorf("%s: %+v, %v, want %q", body, f, err, c.text)
		}
		if known, followed := v.provisionings.knows("general-a"); !known || followed != c.followed {
			t.Errorf("%s: known %t, followed %t, want %t", body, known, followed, c.followed)
		}
		if kept, _ := v.boots.Of("general-a"); kept.Text != c.text {
			t.Errorf("%s: remembered is %+v, want %q", body, kept, c.text)
		}
		v.provisionings.follow("general-a", nil)
		v.lookAtProvisioning(t.Context(), "general-a", v.provisionings.byClaim["general-a"])
		if _, followed := v.provisionings.knows("general-a"); followed != c.followed {
			t.Errorf("%s, looked at again: followed %t, want %t", body, followed, c.followed)
		}
	}
}

// Errors in the instance view tell why; what is no error there does not.
func TestFailureInInstanceViewOfExtension(t *testing.T) {
	says := func(level armcompute.StatusLevelTypes, message string) *armcompute.InstanceViewStatus {
		return &armcompute.InstanceViewStatus{Level: to.Ptr(level), Message: to.Ptr(message)}
	}
	const silent = "extension cse failed, and Azure says no more than that"
	info, bad := armcompute.StatusLevelTypesInfo, armcompute.StatusLevelTypesError
	for want, properties := range map[string]*armcompute.VirtualMachineExtensionProperties{
		silent:       nil,
		silent + " ": {},
		"VMExtensionFailed: No route.": {InstanceView: &armcompute.VirtualMachineExtensionInstanceView{
			Statuses: []*armcompute.InstanceViewStatus{nil, says(info, "It runs."), says(bad, "No route.")},
		}},
	} {
		e := &armcompute.VirtualMachineExtension{Name: to.Ptr("cse"), Properties: properties}
		if f := failureInView(e); f.Text != strings.TrimSpace(want) {
			t.Errorf("got %q, want %q", f.Text, want)
		}
	}
}

// Interfaces without a machine are the cluster's own when they bear its tag and a claim's
// name; those of AKS machines are AKS's.
func TestOrphanInterfacesAreTheClustersOwn(t *testing.T) {
	nic := func(name, tags, more string) string {
		return `{"name": "` + name + `", "tags": {` + tags + `}, "properties": {` + more + `}}`
	}
	const ours = `"karpenter.azure.com_cluster": "c"`
	a := &azure{answer: always(http.StatusOK, `{"value": [`+strings.Join([]string{
		nic("aks-general-a", ours, ""),
		nic("aks-general-b", ours, `"virtualMachine": {"id": "x"}`),
		nic("aks-general-c", `"karpenter.azure.com_cluster": "another"`, ""),
		nic("aks-general-d", ours+`, "karpenter.azure.com_aksmachine_nodeclaim": "general-d"`, ""),
		nic("jumpbox", ours, ""),
		`null`, `{"properties": {}}`, `{"name": "aks-general-e", "tags": {` + ours + `}}`,
	}, ",")+`]}`)}
	loose, err := a.launcher(t).clients.Lists.LooseNICs(t.Context())
	claims := OrphanClaims(loose, "c")
	if err != nil || !slices.Equal(claims, []string{"general-a"}) {
		t.Errorf("got %v, %v, want general-a alone", claims, err)
	}
}

// An interface in use goes with its machine, and is not tried again.
func TestInterfaceInUseIsLeftToItsMachine(t *testing.T) {
	for code, kept := range map[string]int{"NicInUse": 0, "NicReservedForAnotherVm": 1} {
		v := (&azure{answer: always(http.StatusBadRequest, `{"error": {"code": "`+code+`"}}`)}).launcher(t)
		v.later.add("aks-general-a")
		if err := v.deleteNIC(t.Context(), "aks-general-a"); err != nil || len(v.later.list()) != kept {
			t.Errorf("%s: %v, to be tried again: %v", code, err, v.later.list())
		}
	}
	v := (&azure{answer: always(http.StatusConflict, `{"error": {"code": "Another"}}`)}).launcher(t)
	if err := v.deleteNIC(t.Context(), "aks-general-a"); err == nil || !strings.Contains(err.Error(), "aks-general-a") {
		t.Errorf("another refusal: %v", err)
	}
}

func TestDeletionsThatNobodyAsksAboutAreForgotten(t *testing.T) {
	d := newDeletions()
	for i := range mostDeletions + 1 {
		d.keep(fmt.Sprint(i), &deletion{})
	}
	if len(d.pending) != 1 || d.pending[fmt.Sprint(mostDeletions)] == nil {
		t.Errorf("%d are remembered, want the last alone", len(d.pending))
	}
}

// Azure takes identities only with the word for what they are.
func TestMissingIdentityIsSentAsUserAssigned(t *testing.T) {
	a := &azure{answer: func(request string) (int, string) {
		if strings.HasPrefix(request, http.MethodPatch) {
			return http.StatusOK, `{}`
		}
		return http.StatusOK, `{"tags": {"karpenter.azure.com_cluster": "c", "compute.aks.billing": "linux"}}`
	}}
	v := a.launcher(t)
	v.config.NodeIdentities = []string{"/nodes"}
	if err := v.Update(t.Context(), launch.Machine{Claim: "general-a"}, &nodeclass.NodeClass{}); err != nil {
		t.Fatal(err)
	}
	want := `{"identity":{"type":"UserAssigned","userAssignedIdentities":{"/nodes":{}}}}`
	if got := a.sent["PATCH aks-general-a"]; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// An operation that Azure does not know any more is not asked for again.
func TestLostOperationIsNotAskedForAgain(t *testing.T) {
	a := &azure{answer: func(request string) (int, string) {
		if request == "GET put" {
			return http.StatusNotFound, `{}`
		}
		return http.StatusOK, `{"properties": {"provisioningState": "Creating"}}`
	}}
	v := a.launcher(t)
	if err := v.provision(t.Context(), launch.Machine{Claim: "general-a"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		v.lookAtProvisioning(t.Context(), "general-a", v.provisionings.byClaim["general-a"])
	}
	extension := "GET " + strings.ToLower(bootstrap.ProvisioningExtension().Name)
	if want := []string{"GET put", extension, extension}; !slices.Equal(a.asked[1:], want) {
		t.Errorf("asked %v, want %v", a.asked[1:], want)
	}
}

// What is not a machine of nap's by its provider id is not asked for.
func TestForeignProviderIDIsNotAskedFor(t *testing.T) {
	a := &azure{answer: always(http.StatusNotFound, `{}`)}
	if _, err := a.launcher(t).Find(t.Context(), "azure:///x/virtualMachines/other"); !errors.Is(err, launch.ErrForeign) || len(a.asked) > 0 {
		t.Errorf("%v, asked %v, want ErrForeign and nothing", err, a.asked)
	}
}

// Only a machine with boot diagnostics has a serial log, and not from its first moment.
func TestConsoleIsAskedForWhereItIsKept(t *testing.T) {
	for machine, asked := range map[string]int{
		`{}`:                 1,
		`{"properties": {}}`: 1,
		`{"properties": {"diagnosticsProfile": {}}}`:                                     1,
		`{"properties": {"diagnosticsProfile": {"bootDiagnostics": {}}}}`:                1,
		`{"properties": {"diagnosticsProfile": {"bootDiagnostics": {"enabled": true}}}}`: 2,
	} {
		for _, blob := range []string{`{}`, `{"serialConsoleLogBlobUri": ""}`} {
			a := &azure{answer: func(request string) (int, string) {
				if strings.HasPrefix(request, http.MethodPost) {
					return http.StatusOK, blob
				}
				return http.StatusOK, machine
			}}
			lines, err := a.launcher(t).Console(t.Context(), launch.Machine{Claim: "general-a"})
			if err != nil || lines != nil || len(a.asked) != asked {
				t.Errorf("%s, %s: %v, %v, asked %v", machine, blob, lines, err, a.asked)
			}
			if asked == 2 && !strings.Contains(a.query, "sasUriExpirationTimeInMinutes=5") {
				t.Errorf("asked for an address with %s, want one for 5 minutes", a.query)
			}
		}
	}
}

// Azure ends an operation with an extension's code for what is no failure of it, such as
// another operation on the machine. Without an exit code the extension itself is asked.
func TestFailureWithoutExitCodeIsAskedOfTheExtension(t *testing.T) {
	a := &azure{answer: func(request string) (int, string) {
		if request == "GET put" {
			return http.StatusOK, `{"status": "Failed", "error": {"code": "VMExtensionProvisioningError", "message": "Superseded."}}`
		}
		return http.StatusOK, `{"properties": {"provisioningState": "Creating"}}`
	}}
	v := a.launcher(t)
	if err := v.provision(t.Context(), launch.Machine{Claim: "general-a"}); err != nil {
		t.Fatal(err)
	}
	v.lookAtProvisioning(t.Context(), "general-a", v.provisionings.byClaim["general-a"])
	if f, failed := v.boots.Of("general-a"); failed {
		t.Errorf("the boot counts as failed: %+v", f)
	}
	if _, followed := v.provisionings.knows("general-a"); !followed {
		t.Error("the extension is not looked at any more")
	}
}
