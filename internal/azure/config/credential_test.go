package config

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// door answers requests for tokens, and remembers where and how.
type door struct {
	address string
	form    url.Values
}

func (d *door) Do(r *http.Request) (*http.Response, error) {
	body := `{"access_token": "token", "expires_in": 3600, "expires_on": "4102444800", "token_type": "Bearer", "resource": "x"}`
	address := r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
	switch {
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		host := "https://" + r.URL.Host + "/tenant"
		body = `{"token_endpoint": "` + host + `/oauth2/v2.0/token", "authorization_endpoint": "` +
			host + `/oauth2/v2.0/authorize", "issuer": "` + host + `/v2.0"}`
	default:
		d.address = address
		if r.Body != nil {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if d.form, err = url.ParseQuery(string(text)); err != nil {
				return nil, err
			}
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// The settings are those of every component that signs in to Azure; nothing else
// than they selects the way.
func TestCredentialBySettings(t *testing.T) {
	assertion := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(assertion, []byte("projected"), 0o600); err != nil {
		t.Fatal(err)
	}
	const own = "https://login.lab.test"
	for _, tt := range []struct {
		name      string
		variables map[string]string
		address   string
		form      map[string]string
	}{
		{"workload identity", map[string]string{
			"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_FEDERATED_TOKEN_FILE": assertion,
		},
			own + "/tenant/oauth2/v2.0/token", map[string]string{"client_id": "client", "client_assertion": "projected"}},
		{"a secret of a service principal",
			map[string]string{"AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_SECRET": "secret"},
			own + "/tenant/oauth2/v2.0/token", map[string]string{"client_id": "client", "client_secret": "secret"}},
		{"a managed identity, where the tenant names the way",
			map[string]string{"AZURE_CLIENT_ID": "client", "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential"},
			"http://169.254.169.254/metadata/identity/oauth2/token", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE",
				"AZURE_TOKEN_CREDENTIALS", "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"} {
				t.Setenv(name, tt.variables[name])
				if tt.variables[name] == "" {
					os.Unsetenv(name)
				}
			}
			c := Cloud{TenantID: "tenant", Environment: &Environment{
				ResourceManagerEndpoint: "https://arm.lab.test", ActiveDirectoryEndpoint: own, TokenAudience: "https://management.azure.com",
			}}
			d := &door{}
			credential, err := c.Credential(azcore.ClientOptions{Transport: d})
			if err != nil {
				t.Fatal(err)
			}
			token, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://management.azure.com/.default"}})
			if err != nil || token.Token != "token" {
				t.Fatalf("token %q, %v", token.Token, err)
			}
			if d.address != tt.address {
				t.Errorf("asked %s, want %s", d.address, tt.address)
			}
			for key, want := range tt.form {
				if got := d.form.Get(key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestCredentialWithoutSettingsNamesOptions(t *testing.T) {
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "Nonsense")
	if _, err := (&Cloud{Name: CloudPublic}).Credential(azcore.ClientOptions{}); err == nil ||
		!strings.Contains(err.Error(), "workload identity") {
		t.Errorf("got %v, want an error that names the ways", err)
	}
}
