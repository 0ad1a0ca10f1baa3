// Package authorization is the simulated Microsoft.Authorization: role definitions and
// role assignments. Every principal of the configuration has a role of its own on the
// subscription; AKS has given the cluster's identity its role on the node resource group;
// more assignments come with the configuration, and from clients. What clients assign to
// a managed identity permits; the rest is shown, and permits nothing.
package authorization

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// Assignment is a role that a principal has at a scope.
type Assignment struct {
	// PrincipalID is the object id of the principal.
	PrincipalID string
	// Scope is a resource id.
	Scope string
	// Role names it, Actions are what it permits.
	Role    string
	Actions []string
}

// Provider is Microsoft.Authorization.
type Provider struct {
	sub         *arm.Subscription
	assignments []Assignment
	tenant      Tenant
}

// Tenant is who there is.
type Tenant struct {
	// Open says that anyone may sign in, with every permission.
	Open bool
	// Has says whether there is a principal with an object id. Where the tenant is open
	// there are others, too.
	Has func(objectID string) bool
}

// New makes the provider of a subscription. In an open tenant every principal that is
// asked for, and that it does not have, has the role Owner.
func New(sub *arm.Subscription, assignments []Assignment, tenant Tenant) *Provider {
	return &Provider{sub: sub, assignments: assignments, tenant: tenant}
}

// RoleContributor is the name of a built-in role.
const RoleContributor = "Contributor"

// version is that of the published API.
const version = "2022-04-01"

// Types as they are shown and, lower case, stored.
const (
	displayAssignment = "Microsoft.Authorization/roleAssignments"
	displayDefinition = "Microsoft.Authorization/roleDefinitions"
	typeAssignment    = "microsoft.authorization/roleassignments"
	typeDefinition    = "microsoft.authorization/roledefinitions"
)

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	rows := []arm.Route{
		{Method: http.MethodGet, Type: displayAssignment, Handle: p.listAssignments},
		{Method: http.MethodGet, Type: displayAssignment, Item: true, Handle: p.getAssignment},
		{Method: http.MethodPut, Type: displayAssignment, Item: true, Handle: p.putAssignment},
		{Method: http.MethodDelete, Type: displayAssignment, Item: true, Handle: p.deleteAssignment},
		{Method: http.MethodGet, Type: displayDefinition, Handle: p.listDefinitions},
		{Method: http.MethodGet, Type: displayDefinition, Item: true, Handle: p.getDefinition},
		{Method: http.MethodPut, Type: displayDefinition, Item: true, Handle: p.putDefinition},
		{Method: http.MethodDelete, Type: displayDefinition, Item: true, Handle: p.deleteDefinition},
	}
	for i := range rows {
		rows[i].Scope, rows[i].Versions = arm.AnyScope, []string{version, "2022-05-01-preview"}
	}
	return rows
}

// id is the GUID of the nth assignment or role of the configuration.
func id(kind, n int) string { return fmt.Sprintf("a5510000-0000-4000-8000-%04d%08d", kind, n) }

// owner is the number of the role Owner.
const owner = 99999999

func (p *Provider) definitionID(n int) string {
	return p.sub.Path() + "/providers/" + displayDefinition + "/" + id(1, n)
}

// Grants are what assignments that clients have made permit a principal. The caller holds
// the lock.
func (p *Provider) Grants(principal string) []arm.Grant {
	out := []arm.Grant{}
	for _, r := range p.sub.Resources.Sorted(typeAssignment) {
		if !strings.EqualFold(arm.Text(r.Doc, "properties", "principalId"), principal) {
			continue
		}
		for _, permission := range permissions(p.definition(arm.Text(r.Doc, "properties", "roleDefinitionId"))) {
			permission.Scope = arm.Text(r.Doc, "properties", "scope")
			out = append(out, permission)
		}
	}
	return out
}

// permissions are those of a role, without a scope.
func permissions(role arm.Document) []arm.Grant {
	var out []arm.Grant
	listed, _ := arm.At(role, "properties", "permissions").([]any)
	for _, one := range listed {
		permission, _ := one.(arm.Document)
		out = append(out, arm.Grant{Actions: texts(permission["actions"]), NotActions: texts(permission["notActions"])})
	}
	return out
}

func texts(list any) []string {
	values, _ := list.([]any)
	var out []string
	for _, v := range values {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// scopeOf is what a resource of this provider is on.
func scopeOf(p arm.Path) string {
	id := p.ID()
	return id[:strings.LastIndex(strings.ToLower(id), "/providers/")]
}
