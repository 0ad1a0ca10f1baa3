package authorization

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

var guid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// role is the nth role of the configuration as the API shows it.
func (p *Provider) role(n int, a Assignment) arm.Document {
	return arm.Document{
		"id": p.definitionID(n), "name": id(1, n), "type": displayDefinition,
		"properties": arm.Document{
			"roleName": a.Role, "type": "CustomRole", "assignableScopes": []any{a.Scope},
			"permissions": []any{arm.Document{"actions": arm.Texts(a.Actions), "notActions": []any{}}},
		},
	}
}

// networkContributor is a role that every tenant has, with which AKS works in networks of
// its users' own: https://learn.microsoft.com/azure/role-based-access-control/built-in-roles/networking
func (p *Provider) networkContributor() arm.Document {
	const guid = "4d97b98b-1d4f-4910-a051-f42900715ad8"
	return arm.Document{
		"id": p.sub.Path() + "/providers/" + displayDefinition + "/" + guid, "name": guid, "type": displayDefinition,
		"properties": arm.Document{
			"roleName": "Network Contributor", "type": "BuiltInRole", "assignableScopes": []any{"/"},
			"permissions": []any{arm.Document{"notActions": []any{}, "actions": arm.Texts([]string{
				"Microsoft.Authorization/*/read", "Microsoft.Insights/alertRules/*", "Microsoft.Network/*",
				"Microsoft.ResourceHealth/availabilityStatuses/read", "Microsoft.Resources/deployments/*",
				"Microsoft.Resources/subscriptions/resourceGroups/read", "Microsoft.Support/*"})}},
		},
	}
}

// definitions are all roles.
func (p *Provider) definitions() []arm.Document {
	var out []arm.Document
	for n, a := range p.assignments {
		out = append(out, p.role(n, a))
	}
	out = append(out, p.role(owner, Assignment{Scope: p.sub.Path(), Role: "Owner", Actions: []string{"*"}}), p.networkContributor())
	for _, r := range p.sub.Resources.Sorted(typeDefinition) {
		out = append(out, r.Doc)
	}
	return out
}

// definition is the role with an id, whatever scope the id names: the GUID tells roles
// apart. It is nil where there is none.
func (p *Provider) definition(id string) arm.Document {
	for _, d := range p.definitions() {
		if strings.EqualFold(arm.Text(d, "name"), arm.LastSegment(id)) {
			return d
		}
	}
	return nil
}

// listDefinitions lists the roles that can be assigned at a scope, by name where the filter
// has one.
func (p *Provider) listDefinitions(c *arm.Call) (arm.Reply, error) {
	scope, filter := scopeOf(c.Path), c.Request.URL.Query().Get("$filter")
	name := ""
	if rest, ok := strings.CutPrefix(filter, "roleName eq '"); ok {
		name = strings.TrimSuffix(rest, "'")
	} else if filter != "" {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "UnsupportedFilter", "The filter '%s' is not supported.", filter)
	}
	values := []any{}
	for _, d := range p.definitions() {
		at, _ := arm.At(d, "properties", "assignableScopes").([]any)
		for _, s := range at {
			if text, _ := s.(string); arm.Within(scope, text) && (name == "" || strings.EqualFold(arm.Text(d, "properties", "roleName"), name)) {
				values = append(values, d)
				break
			}
		}
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}

func (p *Provider) getDefinition(c *arm.Call) (arm.Reply, error) {
	if d := p.definition(c.Path.ID()); d != nil {
		return arm.Reply{Status: http.StatusOK, Body: d}, nil
	}
	return arm.Reply{}, arm.NewError(http.StatusNotFound, "RoleDefinitionDoesNotExist",
		"The specified role definition with ID '%s' does not exist.", c.Path.Name())
}

// putDefinition makes a role of the tenant's own, or changes it.
func (p *Provider) putDefinition(c *arm.Call) (arm.Reply, error) {
	var body struct {
		Properties struct {
			RoleName         string   `json:"roleName"`
			AssignableScopes []string `json:"assignableScopes"`
			Permissions      []any    `json:"permissions"`
		} `json:"properties"`
	}
	doc, err := arm.DecodeBody(c.Body, &body)
	if err != nil {
		return arm.Reply{}, err
	}
	b := body.Properties
	bad := func(status int, code, format string, args ...any) (arm.Reply, error) {
		return arm.Reply{}, arm.NewError(status, code, format, args...)
	}
	switch {
	case !guid.MatchString(c.Path.Name()):
		return bad(http.StatusBadRequest, "RoleDefinitionIdInvalid", "The role definition ID '%s' must be a GUID.", c.Path.Name())
	case b.RoleName == "" || len(b.AssignableScopes) == 0 || len(b.Permissions) == 0:
		return bad(http.StatusBadRequest, "InvalidRoleDefinition", "The role definition needs a name, permissions and assignable scopes.")
	}
	for _, d := range p.definitions() {
		if strings.EqualFold(arm.Text(d, "properties", "roleName"), b.RoleName) && !strings.EqualFold(arm.Text(d, "name"), c.Path.Name()) {
			return bad(http.StatusConflict, "RoleDefinitionWithSameNameExists",
				"A custom role with the same name already exists in this directory. Use a different name.")
		}
	}
	stored := p.sub.Path() + "/providers/" + displayDefinition + "/" + c.Path.Name()
	arm.Section(doc, "properties")["type"] = "CustomRole"
	doc["id"], doc["name"], doc["type"] = stored, c.Path.Name(), displayDefinition
	r := p.sub.Resources.Find(stored)
	if r == nil {
		r = &arm.Resource{ID: stored, Type: typeDefinition}
	}
	p.sub.Resources.Put(r, doc)
	return arm.Reply{Status: http.StatusCreated, Body: doc}, nil
}

func (p *Provider) deleteDefinition(c *arm.Call) (arm.Reply, error) {
	r := p.sub.Resources.Find(p.sub.Path() + "/providers/" + displayDefinition + "/" + c.Path.Name())
	if r == nil {
		return arm.Reply{Status: http.StatusNoContent}, nil
	}
	for _, d := range p.all() {
		if strings.EqualFold(arm.LastSegment(arm.Text(d, "properties", "roleDefinitionId")), c.Path.Name()) {
			return arm.Reply{}, arm.NewError(http.StatusBadRequest, "RoleDefinitionHasAssignments",
				"There are existing role assignments referencing role (code: RoleDefinitionHasAssignments)")
		}
	}
	p.sub.Resources.Drop(r)
	return arm.Reply{Status: http.StatusOK, Body: r.Doc}, nil
}
