package identity

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Endpoints are the rows of the sign-in and of the description of the cloud.
func (d *Directory) Endpoints() []arm.Endpoint {
	return []arm.Endpoint{
		{Method: http.MethodGet, Path: "/metadata/endpoints", Operation: "metadata/endpoints", Handle: d.endpoints},
		{Method: http.MethodGet, Path: "/{tenant}/v2.0/.well-known/openid-configuration", Operation: "oauth2/discovery", Handle: d.discovery},
		{Method: http.MethodGet, Path: "/common/discovery/instance", Operation: "oauth2/discovery", Handle: d.instanceDiscovery},
		{Method: http.MethodPost, Path: "/{tenant}/oauth2/v2.0/token", Operation: "oauth2/token", Handle: d.token},
	}
}

// oauthError is an error in the form of the token endpoint rather than ARM's.
func oauthError(code, description string) (arm.Reply, error) {
	return arm.Reply{Status: http.StatusUnauthorized, Body: arm.Document{
		"error": code, "error_description": description, "error_codes": []any{7000215},
	}}, nil
}

// trusts reports whether an assertion says what a federated credential of a managed
// identity wants. Its signature is not checked.
func (d *Directory) trusts(clientID, assertion string) bool {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return false
	}
	var says struct {
		Issuer   string          `json:"iss"`
		Subject  string          `json:"sub"`
		Audience json.RawMessage `json:"aud"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &says) != nil {
		return false
	}
	audiences := make([]string, 1)
	if json.Unmarshal(says.Audience, &audiences[0]) != nil && json.Unmarshal(says.Audience, &audiences) != nil {
		return false
	}
	return d.made.Trusts(d.made.ByClient(clientID), says.Issuer, says.Subject, audiences)
}

// token gives a token for a client secret or a federated token. What a federated
// token of a configured principal says is not checked.
func (d *Directory) token(r *http.Request) (arm.Reply, error) {
	d.sub.Lock.Lock()
	defer d.sub.Lock.Unlock()
	if err := r.ParseForm(); err != nil {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "invalid_request", "%s", err)
	}
	if t := r.PathValue("tenant"); !strings.EqualFold(t, d.sub.TenantID) {
		return oauthError("invalid_request", fmt.Sprintf("AADSTS90002: Tenant '%s' not found.", t))
	}
	if g := r.PostForm.Get("grant_type"); g != "client_credentials" {
		return arm.Reply{Status: http.StatusBadRequest, Body: arm.Document{
			"error": "unsupported_grant_type", "error_description": fmt.Sprintf("AADSTS70003: The app requested an unsupported grant type '%s'.", g),
		}}, nil
	}
	id := r.PostForm.Get("client_id")
	p := d.principalOf(id)
	if p == nil {
		return oauthError("unauthorized_client",
			fmt.Sprintf("AADSTS700016: Application with identifier '%s' was not found in the directory.", id))
	}
	secret, assertion := r.PostForm.Get("client_secret"), r.PostForm.Get("client_assertion")
	switch {
	case p.Grants != nil && !d.trusts(id, assertion):
		return oauthError("invalid_client", "AADSTS70021: No matching federated identity record found for presented assertion.")
	case secret == "" && assertion == "":
		return oauthError("invalid_client",
			"AADSTS7000216: 'client_assertion' or 'client_secret' is required for the 'client_credentials' grant type.")
	case secret != "" && len(d.principals) > 0 && secret != p.Secret:
		return oauthError("invalid_client", "AADSTS7000215: Invalid client secret provided.")
	}
	token, expires := d.Token(id)
	left := int64(expires.Sub(d.sub.Clock.Now()).Seconds())
	return arm.Reply{Status: http.StatusOK, Header: http.Header{"Cache-Control": {"no-store"}}, Body: arm.Document{
		"token_type": "Bearer", "expires_in": left, "ext_expires_in": left, "access_token": token,
	}}, nil
}

// discovery is the OpenID configuration from which clients learn the token endpoint.
func (d *Directory) discovery(r *http.Request) (arm.Reply, error) {
	base := "https://" + r.Host + "/" + r.PathValue("tenant")
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"issuer":                                base + "/v2.0",
		"authorization_endpoint":                base + "/oauth2/v2.0/authorize",
		"token_endpoint":                        base + "/oauth2/v2.0/token",
		"device_authorization_endpoint":         base + "/oauth2/v2.0/devicecode",
		"jwks_uri":                              base + "/discovery/v2.0/keys",
		"token_endpoint_auth_methods_supported": []any{"client_secret_post", "private_key_jwt"},
	}}, nil
}

// instanceDiscovery says that this host is an authority of its own.
func (d *Directory) instanceDiscovery(r *http.Request) (arm.Reply, error) {
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"tenant_discovery_endpoint": "https://" + r.Host + "/" + d.sub.TenantID + "/v2.0/.well-known/openid-configuration",
		"api-version":               "1.1",
		"metadata":                  []any{arm.Document{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []any{r.Host}}},
	}}, nil
}

// endpoints describes the cloud, as management.azure.com does.
func (d *Directory) endpoints(r *http.Request) (arm.Reply, error) {
	base := "https://" + r.Host
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"name": "armsim", "resourceManager": base,
		"authentication": arm.Document{"loginEndpoint": base, "audiences": []any{"https://management.azure.com"}, "tenant": d.sub.TenantID},
	}}, nil
}
