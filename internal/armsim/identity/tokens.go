package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/managedidentity"
)

// Directory is the tenant: who may sign in, and the tokens that they get.
type Directory struct {
	sub        *arm.Subscription
	seed       uint64          // the key of the tokens follows from it
	principals []arm.Principal // none: anyone, with every permission
	made       Identities      // those that clients have made
	roles      Roles
}

// Identities are the managed identities that clients have made.
type Identities interface {
	ByClient(id string) *managedidentity.Identity
	// Trusts reports whether a token of another issuer counts as the identity's.
	Trusts(i *managedidentity.Identity, issuer, subject string, audiences []string) bool
}

// Roles are the role assignments.
type Roles interface {
	// Grants are what role assignments permit the principal with an object id.
	Grants(principal string) []arm.Grant
}

// New makes the directory of a subscription's tenant. Without principals anyone may
// sign in, with every permission.
func New(sub *arm.Subscription, seed uint64, principals []arm.Principal, made Identities, roles Roles) *Directory {
	return &Directory{sub: sub, seed: seed, principals: principals, made: made, roles: roles}
}

// tokenLife is how long access tokens are good for, as in Azure by default.
// It is not compressed: clients refresh by their own clock.
const tokenLife = time.Hour

// claims are the parts of a token that the server looks at again.
type claims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	AppID    string `json:"appid"`
	ObjectID string `json:"oid"` // that of a configured principal is its client id
	Tenant   string `json:"tid"`
	Issued   int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

// sign makes a JWT. The key follows from seed and tenant, so that tokens
// outlive a restart of the lab; they guard nothing but a simulation.
func (d *Directory) sign(c claims) string {
	payload, _ := json.Marshal(c) // strings and integers always encode
	enc := base64.RawURLEncoding
	head := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString(payload)
	return head + "." + enc.EncodeToString(d.mac(head))
}

func (d *Directory) mac(text string) []byte {
	m := hmac.New(sha256.New, fmt.Appendf(nil, "%d/%s", d.seed, d.sub.TenantID))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Token signs a bearer token for a client, good for an hour. Tests use it to
// skip the sign-in.
func (d *Directory) Token(clientID string) (token string, expires time.Time) {
	return d.tokenOf(d.sub.TenantID, clientID)
}

// foreignTenant is a tenant beside the subscription's own.
const foreignTenant = "f0e1d2c3-0000-4000-8000-000000000009"

// ForeignToken signs a token of another tenant, good for an hour.
func (d *Directory) ForeignToken() (token string, expires time.Time) {
	return d.tokenOf(foreignTenant, "galleries")
}

// ForeignSigned says whether the other tenant signed the token.
func (d *Directory) ForeignSigned(token string) bool {
	known, err := d.verify(token)
	return err == nil && known.Tenant == foreignTenant
}

func (d *Directory) tokenOf(tenant, clientID string) (token string, expires time.Time) {
	now := d.sub.Clock.Now()
	expires = now.Add(tokenLife)
	object := clientID
	if i := d.made.ByClient(clientID); i != nil {
		object = i.PrincipalID
	}
	return d.sign(claims{
		Issuer: "https://sts.windows.net/" + tenant + "/", Audience: "https://management.azure.com",
		AppID: clientID, ObjectID: object, Tenant: tenant, Issued: now.Unix(), Expires: expires.Unix(),
	}), expires
}

// principalOf is the principal with the client ID; nil when there is none. A managed
// identity may do what its role assignments permit now.
func (d *Directory) principalOf(clientID string) *arm.Principal {
	if i := d.made.ByClient(clientID); i != nil {
		grants := d.roles.Grants(i.PrincipalID)
		return &arm.Principal{ClientID: i.ClientID, ObjectID: i.PrincipalID, Grants: &grants}
	}
	if len(d.principals) == 0 {
		return &arm.Principal{ClientID: clientID}
	}
	for i := range d.principals {
		if strings.EqualFold(d.principals[i].ClientID, clientID) {
			return &d.principals[i]
		}
	}
	return nil
}

// Authenticate checks the bearer token of a request. Exactly one of the results is
// nil.
func (d *Directory) Authenticate(r *http.Request) (*arm.Principal, *arm.Error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, arm.NewError(http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	}
	c, refusal := d.verify(token)
	if refusal != nil {
		return nil, refusal
	}
	p := d.principalOf(c.AppID)
	if p == nil {
		return nil, arm.NewError(http.StatusUnauthorized, "InvalidAuthenticationToken",
			"The application '%s' is not known in tenant '%s'.", c.AppID, d.sub.TenantID)
	}
	return p, nil
}

// verify reads a token that this server has signed.
func (d *Directory) verify(token string) (claims, *arm.Error) {
	head, sig, ok := arm.CutLast(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if !ok || err != nil || !hmac.Equal(raw, d.mac(head)) {
		return claims{}, arm.NewError(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	_, payload, _ := strings.Cut(head, ".")
	var c claims
	decoded, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(decoded, &c)
	}
	if err != nil {
		return claims{}, arm.NewError(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	// The token holds through the second in which it expires, as clients that
	// renew it in that very second count on; Azure is more lenient still.
	if d.sub.Clock.Now().Unix() > c.Expires {
		return claims{}, arm.NewError(http.StatusUnauthorized, "ExpiredAuthenticationToken",
			"The access token expiry UTC time '%s' is earlier than current UTC time '%s'.",
			arm.Timestamp(time.Unix(c.Expires, 0)), arm.Timestamp(d.sub.Clock.Now()))
	}
	return c, nil
}

// Authorize checks the permissions of a call's principal, which name ARM actions.
func Authorize(c *arm.Call) error {
	if c.Route.Open || c.Principal.May(c.Route.Action(), c.Path.ID()) {
		return nil
	}
	return arm.NewError(http.StatusForbidden, "AuthorizationFailed",
		"The client '%s' with object id '%s' does not have authorization to perform action '%s' over scope '%s' or the scope is invalid. "+
			"If access was recently granted, please refresh your credentials.",
		c.Principal.ClientID, c.Principal.ClientID, c.Route.Action(), c.Path.ID())
}
