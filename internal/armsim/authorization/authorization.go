// Package authorization is the simulated Microsoft.Authorization: role assignments and
// role definitions, as far as they are read. Every principal of the configuration has a
// role of its own on the subscription; AKS has given the cluster's identity its role on
// the node resource group; more assignments come with the configuration.
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
	// open gives every principal that has no assignment the role Owner.
	open bool
}

// New makes the provider of a subscription. open says that anyone may sign in, with
// every permission.
func New(sub *arm.Subscription, assignments []Assignment, open bool) *Provider {
	return &Provider{sub: sub, assignments: assignments, open: open}
}

// RoleContributor is the name of a built-in role.
const RoleContributor = "Contributor"

// version is that of the published API.
const version = "2022-04-01"

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	const namespace = "Microsoft.Authorization/"
	return []arm.Route{
		{Method: http.MethodGet, Type: namespace + "roleAssignments", Scope: arm.SubscriptionScope,
			Versions: []string{version}, Handle: p.list},
		{Method: http.MethodGet, Type: namespace + "roleDefinitions", Item: true, Scope: arm.SubscriptionScope,
			Versions: []string{version, "2022-05-01-preview"}, Handle: p.definition},
	}
}

// id is the GUID of the nth assignment or role.
func id(kind, n int) string { return fmt.Sprintf("a5510000-0000-4000-8000-%04d%08d", kind, n) }

// owner is the number of the role Owner.
const owner = 99999999

func (p *Provider) definitionID(n int) string {
	return p.sub.Path() + "/providers/Microsoft.Authorization/roleDefinitions/" + id(1, n)
}

// list lists assignments, of one principal where the filter names it: those at, above and
// below the subscription.
func (p *Provider) list(c *arm.Call) (arm.Reply, error) {
	filter := c.Request.URL.Query().Get("$filter")
	principal := ""
	if rest, ok := strings.CutPrefix(filter, "principalId eq '"); ok {
		principal = strings.TrimSuffix(rest, "'")
	} else if filter != "" {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "UnsupportedFilter", "The filter '%s' is not supported.", filter)
	}
	values := []any{}
	add := func(n int, a Assignment) {
		values = append(values, arm.Document{
			"id":   a.Scope + "/providers/Microsoft.Authorization/roleAssignments/" + id(2, n),
			"name": id(2, n), "type": "Microsoft.Authorization/roleAssignments",
			"properties": arm.Document{
				"principalId": a.PrincipalID, "principalType": "ServicePrincipal", "scope": a.Scope, "roleDefinitionId": p.definitionID(n),
			},
		})
	}
	for n, a := range p.assignments {
		if principal == "" || strings.EqualFold(a.PrincipalID, principal) {
			add(n, a)
		}
	}
	if len(values) == 0 && p.open && principal != "" {
		add(owner, Assignment{PrincipalID: principal, Scope: p.sub.Path()})
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}

// definition shows the role of an assignment.
func (p *Provider) definition(c *arm.Call) (arm.Reply, error) {
	show := func(n int, a Assignment) (arm.Reply, error) {
		actions := []any{}
		for _, action := range a.Actions {
			actions = append(actions, action)
		}
		return arm.Reply{Status: http.StatusOK, Body: arm.Document{
			"id": p.definitionID(n), "name": id(1, n), "type": "Microsoft.Authorization/roleDefinitions",
			"properties": arm.Document{
				"roleName": a.Role, "type": "CustomRole", "assignableScopes": []any{a.Scope},
				"permissions": []any{arm.Document{"actions": actions, "notActions": []any{}}},
			},
		}}, nil
	}
	for n, a := range p.assignments {
		if strings.EqualFold(c.Path.Name(), id(1, n)) {
			return show(n, a)
		}
	}
	if strings.EqualFold(c.Path.Name(), id(1, owner)) {
		return show(owner, Assignment{Scope: p.sub.Path(), Role: "Owner", Actions: []string{"*"}})
	}
	return arm.Reply{}, arm.NewError(http.StatusNotFound, "RoleDefinitionDoesNotExist",
		"The specified role definition with ID '%s' does not exist.", c.Path.Name())
}
