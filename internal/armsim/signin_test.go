package armsim_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

func newNICs(t testing.TB, env *armtest.Env, o *arm.ClientOptions) *armnetwork.InterfacesClient {
	t.Helper()
	c, err := armnetwork.NewInterfacesClient(env.SubscriptionID, env.Credential, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Over a real TLS socket, with the SDK's own credentials.
func TestSDKCredentialsSignInOverTLS(t *testing.T) {
	secret := armsim.Principal{ClientID: "11111111-0000-4000-8000-000000000001", Secret: "s3cret"}
	env := armtest.New(t, func(c *armsim.Config) { c.Principals = []armsim.Principal{secret} })
	srv := httptest.NewTLSServer(env.Server.Handler())
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	options := policy.ClientOptions{Cloud: armtest.Cloud(srv.URL), Transport: client, Retry: policy.RetryOptions{MaxRetries: -1}}

	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("a.federated.token"), 0o600); err != nil {
		t.Fatal(err)
	}
	workload, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientOptions: options, ClientID: secret.ClientID, TenantID: env.TenantID, TokenFilePath: tokenFile, DisableInstanceDiscovery: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	byPassword := func(password string) azcore.TokenCredential {
		c, err := azidentity.NewClientSecretCredential(env.TenantID, secret.ClientID, password,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	try := func(c azcore.TokenCredential) error {
		nics, err := armnetwork.NewInterfacesClient(env.SubscriptionID, c,
			&arm.ClientOptions{ClientOptions: options, DisableRPRegistration: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = nics.NewListPager(env.NodeResourceGroup, nil).NextPage(context.Background())
		return err
	}
	for name, c := range map[string]azcore.TokenCredential{"workload identity": workload, "client secret": byPassword("s3cret")} {
		if err := try(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := try(byPassword("wrong")); err == nil || !strings.Contains(err.Error(), "AADSTS7000215") {
		t.Errorf("a wrong secret: %v", err)
	}
}

func TestRequestsNeedValidToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := armtest.New(t)
		url := armtest.Endpoint + "/subscriptions/" + env.SubscriptionID + "/locations?api-version=2022-12-01"
		good, _ := env.Server.Token("x")
		time.Sleep(2 * time.Hour)
		for name, tc := range map[string]struct{ header, code string }{
			"none":    {"", "AuthenticationFailed"},
			"forged":  {"Bearer " + good[:len(good)-2] + "xx", "InvalidAuthenticationToken"},
			"expired": {"Bearer " + good, "ExpiredAuthenticationToken"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", tc.header)
			resp, err := env.HTTP.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body := read(t, resp); resp.StatusCode != http.StatusUnauthorized ||
				resp.Header.Get("WWW-Authenticate") == "" || !strings.Contains(body, tc.code) {
				t.Errorf("%s: %d %s", name, resp.StatusCode, body)
			}
		}
	})
}

func TestPrincipalIsLimitedToItsActions(t *testing.T) {
	u := subscribe(t, func(c *armsim.Config) {
		c.Principals = []armsim.Principal{
			{ClientID: "owner"},
			{ClientID: "joiner", Actions: []string{"Microsoft.Compute/*", "Microsoft.Network/networkInterfaces/*"}},
			{ClientID: "reader", Actions: []string{"Microsoft.Compute/*/read", "Microsoft.Network/*/read"}},
		}
	})
	u.mustBuy("a", machine{size: "Standard_D4s_v5"})
	env := *u.Env
	env.Credential = u.As("reader")
	reader := clientsOf(t, &env)
	if _, err := reader.vms.Get(t.Context(), u.NodeResourceGroup, "a", nil); err != nil {
		t.Error(err)
	}
	_, err := reader.begin("b", machine{size: "Standard_D4s_v5"})
	wantError(t, err, "AuthorizationFailed", "'Microsoft.Network/networkInterfaces/write'")
	wantStatus(t, err, http.StatusForbidden)
	env.Credential = u.As("joiner")
	_, err = clientsOf(t, &env).begin("b", machine{size: "Standard_D4s_v5"})
	wantError(t, err, "LinkedAuthorizationFailed", "'Microsoft.Network/virtualNetworks/subnets/join/action'")
}

func TestAPIVersionMustBeSupported(t *testing.T) {
	env := armtest.New(t)
	token, _ := env.Server.Token("")
	for query, code := range map[string]string{
		"":                       "MissingApiVersionParameter",
		"?api-version=2019-12-1": "NoRegisteredProviderFound",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			armtest.Endpoint+"/subscriptions/"+env.SubscriptionID+"/providers/Microsoft.Compute/virtualMachines"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := env.HTTP.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body := read(t, resp); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, code) {
			t.Errorf("%q: %d %s, want %s", query, resp.StatusCode, body, code)
		}
	}
}
