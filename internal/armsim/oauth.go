package armsim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// tokenLife is how long access tokens are good for, as in Azure by default.
// It is not compressed: clients refresh by their own clock.
const tokenLife = time.Hour

// claims are the parts of a token that the server looks at again.
type claims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	AppID    string `json:"appid"`
	Tenant   string `json:"tid"`
	Issued   int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

// sign makes a JWT. The key follows from seed and tenant, so that tokens
// outlive a restart of the lab; they guard nothing but a simulation.
func (s *Server) sign(c claims) string {
	payload, _ := json.Marshal(c) // strings and integers always encode
	enc := base64.RawURLEncoding
	head := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(payload)
	return head + "." + enc.EncodeToString(s.mac(head))
}

func (s *Server) mac(text string) []byte {
	m := hmac.New(sha256.New, fmt.Appendf(nil, "%d/%s", s.cfg.Seed, s.cfg.TenantID))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Token signs a bearer token for a client, good for an hour. Tests use it to
// skip the sign-in.
func (s *Server) Token(clientID string) (token string, expires time.Time) {
	now := s.now()
	expires = now.Add(tokenLife)
	return s.sign(claims{
		Issuer: "https://sts.windows.net/" + s.cfg.TenantID + "/", Audience: "https://management.azure.com",
		AppID: clientID, Tenant: s.cfg.TenantID, Issued: now.Unix(), Expires: expires.Unix(),
	}), expires
}

// principalOf finds who has the client ID; without configured principals everybody may do all.
func (s *Server) principalOf(clientID string) *Principal {
	if len(s.cfg.Principals) == 0 {
		return &Principal{ClientID: clientID}
	}
	for i := range s.cfg.Principals {
		if strings.EqualFold(s.cfg.Principals[i].ClientID, clientID) {
			return &s.cfg.Principals[i]
		}
	}
	return nil
}

// authenticate checks the bearer token of a request.
func (s *Server) authenticate(r *http.Request) (*Principal, *apiError) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, newError(http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	c, refusal := s.verify(token)
	if refusal != nil {
		return nil, refusal
	}
	p := s.principalOf(c.AppID)
	if p == nil {
		return nil, newError(http.StatusUnauthorized, "InvalidAuthenticationToken", "The application '%s' is not known in tenant '%s'.", c.AppID, s.cfg.TenantID)
	}
	return p, nil
}

// verify reads a token that this server has signed.
func (s *Server) verify(token string) (claims, *apiError) {
	head, sig, ok := cutLast(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if !ok || err != nil || !hmac.Equal(raw, s.mac(head)) {
		return claims{}, newError(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	_, payload, _ := strings.Cut(head, ".")
	var c claims
	decoded, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(decoded, &c)
	}
	if err != nil {
		return claims{}, newError(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	// The token holds through the second in which it expires, as clients that
	// renew it in that very second count on; Azure is more lenient still.
	if s.now().Unix() > c.Expires {
		return claims{}, newError(http.StatusUnauthorized, "ExpiredAuthenticationToken", "The access token expiry UTC time '%s' is earlier than current UTC time '%s'.",
			timestamp(time.Unix(c.Expires, 0)), timestamp(s.now()))
	}
	return c, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// may says whether the principal is permitted an ARM action.
func (p *Principal) may(action string) bool {
	return p.Actions == nil || slices.ContainsFunc(p.Actions, func(pattern string) bool { return matches(pattern, action) })
}

// authorizeLinked checks the permission that using another resource takes: a
// network interface in a subnet needs one on the subnet.
func (s *Server) authorizeLinked(c *call, action, scope string) error {
	if scope == "" || c.principal.may(action) {
		return nil
	}
	return newError(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, it does not have permission to perform action(s) '%s' "+
			"on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.",
		c.principal.ClientID, c.principal.ClientID, c.route.action, c.path.id(), action, scope)
}

// foreignTenant is the tenant of Config.ForeignSubscriptions.
const foreignTenant = "f0e1d2c3-0000-4000-8000-000000000009"

// ForeignToken signs a token of the tenant that Config.ForeignSubscriptions belong
// to, good for an hour.
func (s *Server) ForeignToken() (token string, expires time.Time) {
	now := s.now()
	expires = now.Add(tokenLife)
	return s.sign(claims{
		Issuer: "https://sts.windows.net/" + foreignTenant + "/", Audience: "https://management.azure.com",
		AppID: "galleries", Tenant: foreignTenant, Issued: now.Unix(), Expires: expires.Unix(),
	}), expires
}

// authorizeImage checks that an image of a shared gallery may be used: it may be
// read, or where it is another tenant's, the request has a token of that tenant.
func (s *Server) authorizeImage(c *call, id string) error {
	seg := strings.Split(strings.Trim(id, "/"), "/")
	if len(seg) < 2 || !strings.EqualFold(seg[0], "subscriptions") {
		return nil
	}
	if !slices.ContainsFunc(s.cfg.ForeignSubscriptions, func(f string) bool { return strings.EqualFold(f, seg[1]) }) {
		return s.authorizeLinked(c, "Microsoft.Compute/galleries/images/versions/read", id)
	}
	for bearer := range strings.SplitSeq(c.r.Header.Get("x-ms-authorization-auxiliary"), ",") {
		token, ok := strings.CutPrefix(strings.TrimSpace(bearer), "Bearer ")
		if !ok {
			continue
		}
		if known, err := s.verify(token); err == nil && known.Tenant == foreignTenant {
			return nil
		}
	}
	return newError(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' has permission to perform action '%s' on scope '%s', however the current tenant '%s' is not authorized to access linked subscription '%s'.",
		c.principal.ClientID, c.route.action, c.path.id(), s.cfg.TenantID, seg[1])
}

// authorize checks the principal's permissions, which name ARM actions.
func (s *Server) authorize(c *call) error {
	if c.route.open || c.principal.may(c.route.action) {
		return nil
	}
	return newError(http.StatusForbidden, "AuthorizationFailed",
		"The client '%s' with object id '%s' does not have authorization to perform action '%s' over scope '%s' or the scope is invalid. "+
			"If access was recently granted, please refresh your credentials.",
		c.principal.ClientID, c.principal.ClientID, c.route.action, c.path.id())
}

// oauthError is an error in the form of the token endpoint rather than ARM's.
func oauthError(code, description string) (reply, error) {
	return reply{status: http.StatusUnauthorized, body: document{
		"error": code, "error_description": description, "error_codes": []any{7000215},
	}}, nil
}

// serveToken gives a token for a client secret or a federated token. What a
// federated token says is not checked: the simulated kubelets have no issuer.
func (s *Server) serveToken(r *http.Request) (reply, error) {
	if err := r.ParseForm(); err != nil {
		return reply{}, newError(http.StatusBadRequest, "invalid_request", "%s", err)
	}
	if t := r.PathValue("tenant"); !strings.EqualFold(t, s.cfg.TenantID) {
		return oauthError("invalid_request", fmt.Sprintf("AADSTS90002: Tenant '%s' not found.", t))
	}
	if g := r.PostForm.Get("grant_type"); g != "client_credentials" {
		return reply{status: http.StatusBadRequest, body: document{
			"error": "unsupported_grant_type", "error_description": fmt.Sprintf("AADSTS70003: The app requested an unsupported grant type '%s'.", g),
		}}, nil
	}
	id := r.PostForm.Get("client_id")
	p := s.principalOf(id)
	if p == nil {
		return oauthError("unauthorized_client", fmt.Sprintf("AADSTS700016: Application with identifier '%s' was not found in the directory.", id))
	}
	secret, assertion := r.PostForm.Get("client_secret"), r.PostForm.Get("client_assertion")
	switch {
	case secret == "" && assertion == "":
		return oauthError("invalid_client", "AADSTS7000216: 'client_assertion' or 'client_secret' is required for the 'client_credentials' grant type.")
	case secret != "" && len(s.cfg.Principals) > 0 && secret != p.Secret:
		return oauthError("invalid_client", "AADSTS7000215: Invalid client secret provided.")
	}
	token, expires := s.Token(id)
	left := int64(expires.Sub(s.now()).Seconds())
	return reply{status: http.StatusOK, header: http.Header{"Cache-Control": {"no-store"}}, body: document{
		"token_type": "Bearer", "expires_in": left, "ext_expires_in": left, "access_token": token,
	}}, nil
}

// serveDiscovery is the OpenID configuration from which clients learn the token endpoint.
func (s *Server) serveDiscovery(r *http.Request) (reply, error) {
	base := "https://" + r.Host + "/" + r.PathValue("tenant")
	return reply{status: http.StatusOK, body: document{
		"issuer":                                base + "/v2.0",
		"authorization_endpoint":                base + "/oauth2/v2.0/authorize",
		"token_endpoint":                        base + "/oauth2/v2.0/token",
		"device_authorization_endpoint":         base + "/oauth2/v2.0/devicecode",
		"jwks_uri":                              base + "/discovery/v2.0/keys",
		"token_endpoint_auth_methods_supported": []any{"client_secret_post", "private_key_jwt"},
	}}, nil
}

// serveInstanceDiscovery says that this host is an authority of its own.
func (s *Server) serveInstanceDiscovery(r *http.Request) (reply, error) {
	return reply{status: http.StatusOK, body: document{
		"tenant_discovery_endpoint": "https://" + r.Host + "/" + s.cfg.TenantID + "/v2.0/.well-known/openid-configuration",
		"api-version":               "1.1",
		"metadata":                  []any{document{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []any{r.Host}}},
	}}, nil
}

// serveEndpoints describes the cloud, as management.azure.com does.
func (s *Server) serveEndpoints(r *http.Request) (reply, error) {
	base := "https://" + r.Host
	return reply{status: http.StatusOK, body: document{
		"name": "armsim", "resourceManager": base,
		"authentication": document{"loginEndpoint": base, "audiences": []any{"https://management.azure.com"}, "tenant": s.cfg.TenantID},
	}}, nil
}
