package vm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/launch"
)

// azure answers every request, by its method and the end of its path in lower case, and
// notes what was asked. The status 0 is no answer.
type azure struct {
	answer func(request string) (status int, body string)
	asked  []string
}

func (a *azure) Do(r *http.Request) (*http.Response, error) {
	path := strings.Split(strings.ToLower(r.URL.Path), "/")
	request := r.Method + " " + path[len(path)-1]
	a.asked = append(a.asked, request)
	status, body := a.answer(request)
	if status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if r.Method == http.MethodPut {
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
	clients := Clients{Machines: compute.NewVirtualMachinesClient(), Extensions: compute.NewVirtualMachineExtensionsClient(), NICs: nics}
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
		poller, err := a.launcher(t).clients.Extensions.BeginCreateOrUpdate(t.Context(), "g", "m", "cse", armcompute.VirtualMachineExtension{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ended, err := pollOnce(t.Context(), poller); ended != c.ended || (err != nil) != c.failed {
			t.Errorf("%s: ended %t, %v; want %t, an error %t", name, ended, err, c.ended, c.failed)
		}
	}
}
