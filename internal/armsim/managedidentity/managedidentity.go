// Package managedidentity is the simulated Microsoft.ManagedIdentity: user-assigned
// identities, and the federated credentials by which the tokens of another issuer count
// as theirs. Each identity is a principal of the tenant: it signs in with such a token, and
// may do what its role assignments permit.
package managedidentity

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Types of resources, lower case, as they are stored.
const (
	typeIdentity   = "microsoft.managedidentity/userassignedidentities"
	typeCredential = typeIdentity + "/federatedidentitycredentials"
)

// maxCredentials is how many federated credentials an identity may have:
// https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations
const maxCredentials = 20

var credentialName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-_]{2,119}$`)

// Provider is Microsoft.ManagedIdentity.
type Provider struct {
	sub        *arm.Subscription
	identities arm.Documents
}

// New makes the provider of a subscription.
func New(sub *arm.Subscription) *Provider {
	p := &Provider{sub: sub}
	p.identities = arm.Documents{Resources: sub.Resources, Stateless: true, Complete: p.complete, Deleted: p.deleted}
	return p
}

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	const identity = "Microsoft.ManagedIdentity/userAssignedIdentities"
	versions := []string{"2023-01-31", "2024-11-30"}
	credentials := arm.Documents{Resources: p.sub.Resources, Stateless: true}
	rows := p.identities.Routes(identity, "", "", versions, p.identities.Patch)
	rows = append(rows, credentials.Routes(identity+"/federatedIdentityCredentials", "", "", versions, nil)...)
	for i := range rows {
		switch {
		case rows[i].Method != http.MethodPut:
		case rows[i].Type == identity:
			rows[i].Handle = p.put
		default:
			rows[i].Handle = func(c *arm.Call) (arm.Reply, error) { return p.putCredential(c, credentials) }
		}
	}
	return rows
}

// put makes an identity, or changes its tags.
func (p *Provider) put(c *arm.Call) (arm.Reply, error) {
	var body struct {
		Location string `json:"location"`
	}
	if _, err := arm.DecodeBody(c.Body, &body); err != nil {
		return arm.Reply{}, err
	}
	if body.Location == "" {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	}
	return p.identities.Put(c)
}

// complete adds what Azure gives to an identity.
func (p *Provider) complete(old *arm.Resource, doc arm.Document) {
	properties := arm.Section(doc, "properties")
	if old != nil {
		for _, key := range []string{"clientId", "principalId", "tenantId"} {
			properties[key] = arm.At(old.Doc, "properties", key)
		}
		return
	}
	properties["clientId"], properties["principalId"], properties["tenantId"] = p.sub.IDs.GUID(), p.sub.IDs.GUID(), p.sub.TenantID
}

// deleted removes the credentials of an identity.
func (p *Provider) deleted(r *arm.Resource) {
	for _, c := range p.credentialsOf(r.ID) {
		p.sub.Resources.Drop(c)
	}
}

func (p *Provider) credentialsOf(identity string) []*arm.Resource {
	return slices.DeleteFunc(p.sub.Resources.Sorted(typeCredential), func(r *arm.Resource) bool {
		return !strings.HasPrefix(arm.Key(r.ID), arm.Key(identity)+"/")
	})
}

// putCredential makes or changes a federated credential.
func (p *Provider) putCredential(c *arm.Call, credentials arm.Documents) (arm.Reply, error) {
	var body struct {
		Properties struct {
			Issuer    string   `json:"issuer"`
			Subject   string   `json:"subject"`
			Audiences []string `json:"audiences"`
		} `json:"properties"`
	}
	if _, err := arm.DecodeBody(c.Body, &body); err != nil {
		return arm.Reply{}, err
	}
	if p.sub.Resources.Find(c.Path.Parent()) == nil {
		return arm.Reply{}, arm.ErrNotFound(c.Path)
	}
	b := body.Properties
	bad := func(format string, args ...any) (arm.Reply, error) {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "BadRequest", format, args...)
	}
	issuer, err := url.Parse(b.Issuer)
	switch {
	case !credentialName.MatchString(c.Path.Name()):
		return bad("The federated identity credential name '%s' must match %s.", c.Path.Name(), credentialName)
	case b.Subject == "" || len(b.Audiences) == 0:
		return bad("The properties issuer, subject and audiences are required.")
	case err != nil || issuer.Scheme != "https":
		return bad("The issuer '%s' is not a URL of the scheme https.", b.Issuer)
	case len(b.Audiences) > 1:
		return bad("The number of audiences is %d; one is allowed.", len(b.Audiences))
	}
	others := slices.DeleteFunc(p.credentialsOf(c.Path.Parent()), func(r *arm.Resource) bool { return arm.Key(r.ID) == arm.Key(c.Path.ID()) })
	if len(others) >= maxCredentials {
		return bad("The number of federated identity credentials of the identity exceeds the limit of %d.", maxCredentials)
	}
	for _, o := range others {
		if arm.Text(o.Doc, "properties", "issuer") == b.Issuer && arm.Text(o.Doc, "properties", "subject") == b.Subject {
			return arm.Reply{}, arm.NewError(http.StatusConflict, "Conflict",
				"Issuer and subject combination already exists for this Managed Identity.")
		}
	}
	return credentials.Put(c)
}

// Identity is a principal that clients have made.
type Identity struct {
	ClientID, PrincipalID string
	// ID is the resource id.
	ID string
}

// ByClient is the identity with a client id, ByPrincipal that with an object id; nil where
// there is none. The caller holds the lock.
func (p *Provider) ByClient(id string) *Identity { return p.by("clientId", id) }

// ByPrincipal is the identity with an object id.
func (p *Provider) ByPrincipal(id string) *Identity { return p.by("principalId", id) }

func (p *Provider) by(key, id string) *Identity {
	for _, r := range p.sub.Resources.Sorted(typeIdentity) {
		if strings.EqualFold(arm.Text(r.Doc, "properties", key), id) {
			return &Identity{
				ClientID: arm.Text(r.Doc, "properties", "clientId"), PrincipalID: arm.Text(r.Doc, "properties", "principalId"), ID: r.ID,
			}
		}
	}
	return nil
}

// Trusts reports whether a federated credential of the identity names the issuer, the
// subject and an audience of a token. The case counts, as in Microsoft Entra ID.
func (p *Provider) Trusts(i *Identity, issuer, subject string, audiences []string) bool {
	return slices.ContainsFunc(p.credentialsOf(i.ID), func(r *arm.Resource) bool {
		named, _ := arm.At(r.Doc, "properties", "audiences").([]any)
		return arm.Text(r.Doc, "properties", "issuer") == issuer && arm.Text(r.Doc, "properties", "subject") == subject &&
			slices.ContainsFunc(named, func(a any) bool { text, _ := a.(string); return slices.Contains(audiences, text) })
	})
}
